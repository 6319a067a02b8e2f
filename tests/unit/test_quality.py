"""What `scripts/bench quality` makes of trainings that are over."""

from __future__ import annotations

import importlib
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
BEGAN = 1_000_000.0


@pytest.fixture
def quality(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("quality")


def checkpoint(folder: Path, step: int, minutes: float) -> None:
    path = folder / f"eole/step_{step}/config.json"
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, times=(0, BEGAN + 60 * minutes))


def rows(*points: tuple[float, float]) -> list[dict[str, Any]]:
    """Of checkpoints that were there 0.1 minutes before the points."""
    return [{"point": p, "minutes": p - 0.1, "bleu": bleu, "target tokens": 1_000_000} for p, bleu in points]


def test_the_last_checkpoint_before_each_point_counts(tmp_path: Path, quality: Any) -> None:
    for step, minutes in ((90, 0.9), (100, 1.0), (110, 1.1), (1000, 9.9), (1010, 10.1)):
        checkpoint(tmp_path, step, minutes)
    (tmp_path / "eole/step_1005").mkdir()  # not whole: its last file is missing
    found = quality.latest(tmp_path, "eole/step_*/config.json", BEGAN, [1, 5, 10])
    steps = {point: (one.step, round(one.minutes, 3)) for point, one in found.items()}
    assert steps == {1: (100, 1.0), 5: (110, 1.1), 10: (1000, 9.9)}


def test_a_point_before_all_checkpoints_is_left_out(tmp_path: Path, quality: Any) -> None:
    checkpoint(tmp_path, 50, 2.0)
    assert list(quality.latest(tmp_path, "eole/step_*/config.json", BEGAN, [1, 5])) == [5]
    with pytest.raises(SystemExit, match="no checkpoint before minute 1;"):
        quality.latest(tmp_path, "eole/step_*/config.json", BEGAN, [0.5, 1])


def test_some_checkpoints_lie_between_any_two_points(quality: Any) -> None:
    speed = {"tokens/s": 6000.0, "tokens/update": 3000.0}  # two updates a second
    assert quality.save_every(speed, [5, 10, 60]) == 60  # every 30 seconds
    assert quality.save_every(speed, [0.1, 60]) == 1
    assert quality.save_every(speed, [10, 11]) == 12


def test_ids_are_written_without_the_end_and_come_back_as_text(tmp_path: Path, copy_run: Path, quality: Any) -> None:
    given = quality.give_pieces(tmp_path, str(copy_run / "run"))
    words = (tmp_path / "ids.tgt").read_text().split("\n")
    assert not any(word.split()[-1:] == ["3"] for word in words)
    assert given["pieces"] == 20 and given["longest"] == 9  # 16 letters and four signs; 8 letters and the end
    assert len(words) == len((tmp_path / "ids.src").read_text().split("\n"))
    (tmp_path / "run").symlink_to(copy_run / "run")
    quality._put_together(tmp_path / "ids.tgt", tmp_path)
    prepared = set((copy_run / "train.tgt").read_text().split("\n"))
    assert set((tmp_path / "ids.tgt").read_text().split("\n")) <= prepared


def test_the_table_has_a_line_a_point(quality: Any) -> None:
    found = quality.table([1, 60], {"nmt": rows((1, 8.5), (60, 40.1)), "eole": rows((60, 36.0))})
    head, *lines = (line.split() for line in found.split("\n"))
    assert head == ["minutes", "nmt", "after", "tokens", "eole", "after", "tokens"]
    assert lines[0] == ["1", "8.50", "0.90", "1.00M", "–", "–", "–"]
    assert lines[1] == ["60", "40.10", "59.90", "1.00M", "36.00", "59.90", "1.00M"]


def test_the_plot_goes_up_where_bleu_does(quality: Any) -> None:
    picture = ElementTree.fromstring(quality.plot({"nmt": rows((1, 10.0), (2, 30.0)), "eole": rows((2, 0.0))}))
    axes, ours, theirs = picture.findall("{*}polyline")
    places = [tuple(map(float, place.split(","))) for place in ours.attrib["points"].split()]
    assert places[0][0] < places[1][0] and places[0][1] > places[1][1]  # y counts from the top
    zero = float(axes.attrib["points"].split()[1].split(",")[1])
    assert places[0][1] < zero == float(theirs.attrib["points"].split(",")[1])
