"""What every corpus format promises, run over FORMATS: a new entry is tested before its author writes a test."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.choice import Choice, build, options_of, problems, resolve
from nmt.data.formats import FORMATS, Format, Unit
from nmt.errors import DataError, NmtError

PAIRS = [("one cat", "eine Katze"), ("two cats", "zwei Katzen"), ("", "leer"), ("naïve 猫", "ü")]


def write(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def plain(root: Path) -> dict[str, Any]:
    write(root / "a", [src for src, _ in PAIRS])
    write(root / "b", [tgt for _, tgt in PAIRS])
    return {"src": "a", "tgt": "b"}


def tsv(root: Path) -> dict[str, Any]:
    write(root / "t", ["\t".join(pair) for pair in PAIRS])
    return {"path": "t"}


def tmx(root: Path) -> dict[str, Any]:
    units = [
        f'<tu><tuv xml:lang="en"><seg>{src}</seg></tuv><tuv xml:lang="de"><seg>{tgt}</seg></tuv></tu>'
        for src, tgt in PAIRS
    ]
    write(root / "m.tmx", ["<tmx><body>", *units, "</body></tmx>"])
    return {"path": "m.tmx", "src": "en", "tgt": "de"}


def po(root: Path) -> dict[str, Any]:
    write(root / "c.po", [f'msgid "{src}"\nmsgstr "{tgt}"\n' for src, tgt in PAIRS])
    return {"path": "c.po"}


def wmt(root: Path) -> dict[str, Any]:
    for name, side in (("src.sgm", 0), ("ref.sgm", 1)):
        segments = [f'<seg id="{number}">{pair[side]}</seg>' for number, pair in enumerate(PAIRS, 1)]
        write(root / name, ['<doc docid="d">', *segments, "</doc>"])
    return {"src": "src.sgm", "tgt": "ref.sgm"}


def hub(root: Path) -> dict[str, Any]:
    write(root / "h.json", [json.dumps({"s": src, "t": tgt}) for src, tgt in PAIRS])
    return {"dataset": "json", "files": "h.json", "src": "s", "tgt": "t"}


def demo(root: Path) -> dict[str, Any]:
    return {"split": "test"}


# For each format a function that writes PAIRS (what a format makes up itself excepted) and returns the options.
SAMPLES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "plain": plain,
    "tsv": tsv,
    "tmx": tmx,
    "po": po,
    "wmt": wmt,
    "hub": hub,
    "demo": demo,
}
UNTRANSLATED = {"po"}  # formats in which an empty source means something else


@pytest.fixture(autouse=True, scope="module")
def hub_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(folder))
        import datasets

        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "datasets")
        yield


def test_every_format_has_a_sample_here() -> None:
    assert set(SAMPLES) == set(FORMATS)


def sample(name: str, root: Path, **more: Any) -> Format:
    corpus: Format = build(FORMATS, Choice(name, {**SAMPLES[name](root), **more}), root)
    return corpus


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_yields_units_with_a_place_of_their_own(name: str, tmp_path: Path) -> None:
    units = list(sample(name, tmp_path).read())
    assert all(isinstance(unit, Unit) and isinstance(unit.tgts, tuple) for unit in units)
    assert all(isinstance(text, str) for unit in units for text in (unit.src, *unit.tgts, unit.where))
    assert len({unit.where for unit in units}) == len(units)
    if name != "demo":
        expected = [pair for pair in PAIRS if pair[0] or name not in UNTRANSLATED]
        assert [(unit.src, *unit.tgts) for unit in units] == expected


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_can_be_read_more_than_once(name: str, tmp_path: Path) -> None:
    corpus = sample(name, tmp_path)
    half_read = corpus.read()
    next(iter(half_read))
    assert list(corpus.read()) == list(corpus.read())


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_names_the_files_that_it_reads_without_reading_them(name: str, tmp_path: Path) -> None:
    files = set(sample(name, tmp_path).inputs())
    assert files == {path for path in tmp_path.iterdir() if path.is_file()}
    for path in files:
        path.unlink()
    assert set(build(FORMATS, Choice(name, _written(name, tmp_path)), tmp_path).inputs()) == files


def _written(name: str, root: Path) -> dict[str, Any]:
    """The options of the sample without its files."""
    elsewhere = root / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return SAMPLES[name](elsewhere)


@pytest.mark.parametrize("spoil", ["missing", "a directory"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "demo"])
def test_a_file_that_cannot_be_read_is_one_line_that_names_it(name: str, spoil: str, tmp_path: Path) -> None:
    """Case 15."""
    corpus = sample(name, tmp_path)
    for path in corpus.inputs():
        content = path.read_bytes()
        path.unlink()
        if spoil == "a directory":
            path.mkdir()
        with pytest.raises(DataError) as error:
            list(corpus.read())
        assert str(path) in str(error.value) and "\n" not in str(error.value)
        if spoil == "a directory":
            path.rmdir()
        path.write_bytes(content)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "demo"])
def test_bytes_that_are_not_utf8_are_one_error(name: str, tmp_path: Path) -> None:
    """Case 5."""
    corpus = sample(name, tmp_path)
    path = corpus.inputs()[-1]
    path.write_bytes(path.read_bytes().replace(b"zwei", b"zw\xe9i") + b"\xff")
    with pytest.raises(DataError) as error:
        list(corpus.read())
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", FORMATS)
def test_an_unknown_option_is_refused_before_anything_is_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(NmtError, match="no option `nonsense`"):
        sample(name, tmp_path, nonsense=1)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_explained_and_its_options_are_typed(name: str) -> None:
    constructor = FORMATS[name]
    assert inspect.getdoc(constructor)
    hints = typing.get_type_hints(constructor.__init__)  # type: ignore[misc]
    assert set(options_of(constructor)) <= set(hints)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_has_a_name_for_reports(name: str, tmp_path: Path) -> None:
    title = sample(name, tmp_path).name
    assert title and "\n" not in title and str(tmp_path) not in title


@pytest.mark.parametrize("name", FORMATS)
def test_a_resolved_choice_is_a_choice_of_the_same_corpus(name: str, tmp_path: Path) -> None:
    """Configs are saved with every option written out."""
    choice = resolve(FORMATS, Choice(name, SAMPLES[name](tmp_path)))
    assert problems(FORMATS, choice) == []
    assert list(build(FORMATS, choice, tmp_path).read()) == list(sample(name, tmp_path).read())
