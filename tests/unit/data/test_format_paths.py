"""Names of files in a config: `~`, wildcards, lists, and which files go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.data.formats.paths import align, expand, locate, some
from nmt.errors import DataError


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_a_path_is_in_the_root_or_absolute_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert locate(tmp_path, "a/b") == tmp_path / "a" / "b"
    assert locate(tmp_path, "/a/b") == Path("/a/b")
    assert locate(tmp_path, "~/b") == Path("/home/me/b")
    assert locate(tmp_path, "a~/~b") == tmp_path / "a~" / "~b"


def test_wildcards_are_expanded_at_home_and_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "home/b.en", "home/a.en", "home/.hidden.en", "c.en")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert expand(Path("/nowhere"), "~/*.en") == [tmp_path / "home/a.en", tmp_path / "home/b.en"]
    assert expand(Path("/nowhere"), f"{tmp_path}/*.en") == [tmp_path / "c.en"]
    assert expand(tmp_path, "./home//[ab].en") == [tmp_path / "home/a.en", tmp_path / "home/b.en"]
    assert expand(tmp_path, "*/?.en") == [tmp_path / "home/a.en", tmp_path / "home/b.en"]


def test_a_list_keeps_its_order(tmp_path: Path) -> None:
    touch(tmp_path, "a", "b", "c1", "c2")
    assert expand(tmp_path, ["b", "c*", "a", "gone"]) == [tmp_path / name for name in ("b", "c1", "c2", "a", "gone")]


def test_a_file_called_just_so_wins_over_what_its_wildcards_match(tmp_path: Path) -> None:
    touch(tmp_path, "what?.en", "whats.en", "[1].en", "1.en", "a[b.en")
    assert expand(tmp_path, "what?.en") == [tmp_path / "what?.en"]
    assert expand(tmp_path, "[1].en") == [tmp_path / "[1].en"]
    assert expand(tmp_path, "a[b.en") == [tmp_path / "a[b.en"]
    assert expand(tmp_path, "what*.en") == [tmp_path / "what?.en", tmp_path / "whats.en"]


def test_a_root_with_wildcards_in_its_name_is_no_pattern(tmp_path: Path) -> None:
    root = tmp_path / "data [1] *"
    touch(root, "a.en", "b.en", "a.de", "b.de")
    assert expand(root, "*.en") == [root / "a.en", root / "b.en"]
    assert align(root, "*.en", "*.de") == [(root / "a.en", root / "a.de"), (root / "b.en", root / "b.de")]


def test_files_go_together_by_what_every_wildcard_stands_for(tmp_path: Path) -> None:
    touch(tmp_path, "news/1.en", "news/2.en", "talks/2.en", "news/1.de", "news/2.de", "talks/2.de", "wiki/9.fr")
    aligned = align(tmp_path, "*/[0-9].en", f"{tmp_path}/*/[0-9].de")
    assert [[str(path.relative_to(tmp_path)) for path in files] for files in aligned] == [
        ["news/1.en", "news/1.de"],
        ["news/2.en", "news/2.de"],
        ["talks/2.en", "talks/2.de"],
    ]
    with pytest.raises(DataError, match=r"wiki/9\.fr$"):
        touch(tmp_path, "wiki/8.en", "wiki/8.fr")
        align(tmp_path, "wiki/*.en", "wiki/*.fr")


def test_letters_that_mean_something_elsewhere_are_letters(tmp_path: Path) -> None:
    touch(tmp_path, "a+b (2) 1.en", "a+b (2) 2.en", "x|y$1.de", "x|y$2.de")
    aligned = align(tmp_path, "a+b (2) *.en", "x|y$*.de")
    assert [path.name for files in aligned for path in files] == [
        "a+b (2) 1.en",
        "x|y$1.de",
        "a+b (2) 2.en",
        "x|y$2.de",
    ]


def test_files_that_only_sort_alike_do_not_go_together(tmp_path: Path) -> None:
    touch(tmp_path, "a.en", "b.en", "b.de", "c.de")
    with pytest.raises(DataError) as error:
        align(tmp_path, "*.en", "*.de")
    assert f"{tmp_path}/a.en, {tmp_path}/c.de" in str(error.value)


def test_a_message_names_a_few_files_only(tmp_path: Path) -> None:
    assert some([Path("a")]) == "a"
    assert some([Path(str(n)) for n in range(1_500)]) == "0, 1, 2 and 1,497 more"
