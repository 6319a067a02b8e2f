"""Lines end at `\\n` only, faults name file and line, and what is written is whole or not there."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import files
from nmt.errors import DataError, NmtError
from nmt.files import (
    check_readable,
    check_writable,
    lines_in,
    locked,
    read_lines,
    remove_leftovers,
    sha256,
    write_directory,
    write_file,
)

ODD = ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\0", "\ufeff"]


def lines_of(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return list(read_lines(path))


# --- reading ---


@pytest.mark.parametrize("odd", ODD, ids=[f"U+{ord(c):04X}" for c in ODD])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, odd: str) -> None:
    """Case 1."""
    assert lines_of(tmp_path / "f", f"one{odd}still one\ntwo\n".encode()) == [f"one{odd}still one", "two"]


def test_a_carriage_return_before_the_line_feed_is_no_text(tmp_path: Path) -> None:
    """Case 2."""
    assert lines_of(tmp_path / "f", b"a\r\nb\r\n\r\nc") == ["a", "b", "", "c"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path: Path, pack: type[bytes]) -> None:
    """Case 3."""
    assert lines_of(tmp_path / "f", pack("\ufeffa\n\ufeffb\n".encode())) == ["a", "\ufeffb"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        ("\ufeff".encode(), []),
        (b"\n", [""]),
        ("\ufeff\n".encode(), [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\na", ["", "a"]),
    ],
)
def test_what_counts_as_a_line(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    """Case 8: as `wc -l` counts, and a last line without an end counts too."""
    assert lines_of(tmp_path / "f", content) == lines


def zstd(content: bytes) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(content)
    return bytes(sink.getvalue())


def pzstd(content: bytes) -> bytes:
    """A frame to be skipped, as pzstd puts before the others."""
    return bytes.fromhex("502a4d1804000000") + len(content).to_bytes(4, "little") + zstd(content)


PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zstd, "pzstd": pzstd}


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_packed_files_are_recognised_by_content_whatever_the_name(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Several of them one after the other are one file, as `cat` makes it."""
    for name in ("text.txt", "text.gz", "text.zst"):
        assert lines_of(tmp_path / name, pack(b"a\nb\n")) == ["a", "b"]
        assert lines_of(tmp_path / name, b"plain\n") == ["plain"]
    text = "".join(f"{n} 猫\n" for n in range(50_000))
    packed = pack(text[:99_999].encode()) + pack(b"") + pack(text[99_999:].encode())
    assert lines_of(tmp_path / "f", packed) == text.split("\n")[:-1]


@pytest.mark.parametrize("block", [1, 2, 3, 7, files.BLOCK])
def test_lines_do_not_depend_on_the_blocks_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(files, "BLOCK", block)
    assert lines_of(tmp_path / "f", "\ufeff猫\r\n\r\n\ra\r\r\n\nlong line\n\n\ufeffü".encode()) == [
        *("猫", "", "\ra\r", "", "long line", "", "\ufeffü"),
    ]
    with pytest.raises(DataError, match=":3: byte 0xe9 at column 5"):
        lines_of(tmp_path / "f", "\ufeff猫\r\nb\n猫x\xe9".encode()[:-2] + b"\xe9\nc\n")


def test_a_line_from_a_pipe_is_there_as_soon_as_it_is_sent(tmp_path: Path) -> None:
    """Case 53. The pipe stays open, so that whoever waits for a full block waits for the alarm."""
    read, write = os.pipe()
    alarm = threading.Timer(10, os.close, [write])
    alarm.start()
    try:
        lines = read_lines(f"/dev/fd/{read}")
        for sent, expected in ((b"one\ntw", ["one"]), (b"o\nthree\n", ["two", "three"])):
            os.write(write, sent)
            assert [next(lines) for _ in expected] == expected
            assert not alarm.finished.is_set()
    finally:
        if not alarm.finished.is_set():
            alarm.cancel()
            os.close(write)
        os.close(read)


@pytest.mark.parametrize("closed", [True, False])
def test_without_a_stdin_there_is_one_error(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    stdin = io.TextIOWrapper(io.BytesIO())
    stdin.close()
    monkeypatch.setattr(sys, "stdin", stdin if closed else None)
    with pytest.raises(NmtError, match=r"^stdin: is closed"):
        list(read_lines("-"))


def test_stdin_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO("\ufeffa\u2028b\r\nc".encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(read_lines("-")) == ["a\u2028b", "c"]


def test_a_message_calls_stdin_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff\n")))
    with pytest.raises(DataError, match=r"^stdin:2: byte 0xff at column 1"):
        list(read_lines("-"))


def test_bytes_that_are_not_utf8_are_named_with_file_and_line(tmp_path: Path) -> None:
    """Case 5."""
    path = tmp_path / "latin1.txt"
    path.write_bytes("gut\nschön\n".encode("latin1"))
    lines = read_lines(path)
    assert next(lines) == "gut"
    with pytest.raises(DataError, match=rf"^{path}:2: byte 0xf6 at column 4 is not UTF-8") as error:
        next(lines)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_called_by_its_name(tmp_path: Path, encoding: str) -> None:
    """Case 5."""
    with pytest.raises(DataError, match=r"f:1: byte 0xf[ef] at column 1 .* iconv -f utf-16 -t utf-8$"):
        lines_of(tmp_path / "f", "\ufeffgut\n".encode(encoding).removeprefix(b"\xff\xfe" * (encoding == "utf-16")))
    with pytest.raises(DataError, match="iconv -f latin1"):
        lines_of(tmp_path / "f", b"caf\xe9\xff\xfe\n")


def test_half_a_character_at_the_end_is_no_utf8(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=":1: byte 0xe7"):
        lines_of(tmp_path / "f", "猫".encode()[:2])


def damaged(content: bytes) -> bytes:
    """The same length with eight bytes in the middle turned round."""
    middle = len(content) // 2
    return content[:middle] + bytes(255 - b for b in content[middle : middle + 8]) + content[middle + 8 :]


@pytest.mark.parametrize("spoil", [lambda packed: packed[:-20], lambda packed: packed[:9], damaged])
@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_damaged_files_are_one_error_that_names_the_file(
    tmp_path: Path, pack: Callable[[bytes], bytes], spoil: Callable[[bytes], bytes]
) -> None:
    text = "".join(f"{hashlib.md5(str(i).encode()).hexdigest()}\n" for i in range(5_000)).encode()
    if pack in (zstd, pzstd) and spoil is damaged:
        pytest.skip("without a checksum, as pyarrow writes it, zstd does not notice a wrong letter")
    for packed in (spoil(pack(text)), pack(text) + spoil(pack(text))):
        with pytest.raises(DataError, match=r"f\.gz: cannot be read to its end") as error:
            lines_of(tmp_path / "f.gz", packed)
        assert "\n" not in str(error.value)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    """Case 15."""
    file = tmp_path / "with space, ü and 猫"
    file.write_bytes(b"a\n")
    assert list(read_lines(file)) == ["a"]
    broken = {tmp_path / "gone": "no such file", tmp_path: "is a directory", file / "below": "cannot be read"}
    for path, why in broken.items():
        for attempt in (check_readable, lambda p: list(read_lines(p))):
            with pytest.raises(DataError, match=why) as error:
                attempt(path)
            assert str(path) in str(error.value)


def test_a_name_that_the_system_refuses_to_look_at_is_one_error_too(tmp_path: Path) -> None:
    """Too long a name, like a folder that one may not search, makes even asking whether a file exists fail."""
    path = tmp_path / ("x" * 300)
    for attempt in (check_readable, lambda p: list(read_lines(p)), check_writable):
        with pytest.raises(NmtError, match="cannot be"):
            attempt(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_said(tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0)
    with pytest.raises(DataError, match="secret: cannot be read: Permission denied"):
        check_readable(tmp_path / "secret")


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no /dev/fd here")
def test_checking_a_pipe_takes_nothing_out_of_it() -> None:
    """What a shell makes of `nmt translate MODEL <(zcat text.gz)`."""
    read, write = os.pipe()
    os.write(write, b"first\nsecond\n")
    os.close(write)
    try:
        check_readable(f"/dev/fd/{read}")
        assert list(read_lines(f"/dev/fd/{read}")) == ["first", "second"]
    finally:
        os.close(read)


@pytest.mark.parametrize("content", [b"", b"\n", b"a", b"a\n", b"a\r\n\nb", b"a\rb\n"])
def test_lines_are_counted_without_reading_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """Where that is quick: not if the file would have to be unpacked, nor if it is none."""
    monkeypatch.setattr(files, "BLOCK", 2)
    assert len(lines_of(tmp_path / "f", content)) == lines_in(tmp_path / "f")
    (tmp_path / "f.gz").write_bytes(gzip.compress(content))
    assert lines_in(tmp_path / "f.gz") is None
    assert lines_in("-") is None


# --- writing files ---


def test_a_written_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with write_file(path) as stream:
        stream.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), write_file(path) as stream:
        stream.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_of_a_file_goes_when_it_is_written_again(tmp_path: Path) -> None:
    path, abandoned, others = (
        tmp_path / "a[1].txt",
        tmp_path / ".a[1].txt.1.tmp",
        [".a1.txt.1.tmp", ".a[1].txt.b.1.tmp"],
    )
    for name in (abandoned.name, *others):
        (tmp_path / name).write_text("half")
    with write_file(path) as stream:
        assert not abandoned.exists()
        at_work = tmp_path / f".{path.name}.{os.getpid()}.tmp"
        at_work = at_work.rename(tmp_path / ".a[1].txt.2.tmp")  # as if another process were at it
        stream.write(b"whole")
        with write_file(path) as again:
            again.write(b"sooner")
        at_work.rename(tmp_path / f".{path.name}.{os.getpid()}.tmp")
    assert path.read_bytes() == b"whole"
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, *others])


def test_a_name_in_gz_is_compressed_and_the_same_text_gives_the_same_bytes(tmp_path: Path) -> None:
    packed = []
    for name in ("a.gz", "b.gz"):
        with write_file(tmp_path / name) as stream:
            stream.write(b"text\n")
        assert list(read_lines(tmp_path / name)) == ["text"]
        packed.append((tmp_path / name).read_bytes())
    assert packed[0] == packed[1] != b"text\n"


@pytest.mark.parametrize("name", ["a.xz", "a.de.bz2", "a.zst"])
def test_a_name_of_what_is_only_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NmtError, match=r"is read but not written; name it \.gz"), write_file(tmp_path / name):
        pytest.fail("the block must not be entered")
    assert not os.listdir(tmp_path)


def test_what_is_no_regular_file_is_written_directly() -> None:
    with write_file("/dev/null") as stream:
        stream.write(b"gone")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(NmtError, match=r"^/dev/full: cannot be written: No space"), write_file("/dev/full") as stream:
        stream.write(b"gone")


def test_minus_is_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with write_file("-") as stream:
        stream.write("猫\n".encode())
    assert capfdbinary.readouterr().out == "猫\n".encode()


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    for path, why in ((tmp_path, "is a directory"), (tmp_path / "no" / "out", "does not exist"), (file / "out", "out")):
        with pytest.raises(NmtError, match=why) as error:
            check_writable(path)
        assert str(path) in str(error.value)
    with pytest.raises(NmtError, match=r"exists already.*--overwrite"):
        check_writable(file, overwrite=False)
    with pytest.raises(NmtError, match="exists already"), write_file(file, overwrite=False):
        pytest.fail("the block must not be entered")
    check_writable(file)
    assert file.read_bytes() == b"old"


# --- writing directories ---


def content(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_a_directory_appears_when_it_is_whole_and_replaces_the_older_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "dir"
    for text in (b"first", b"second"):
        with write_directory(path) as place:
            (place / text.decode()).write_bytes(text)
            assert not (path / text.decode()).exists()
        assert content(tmp_path) == {f"deep/dir/{text.decode()}": text}


def test_a_directory_that_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "dir"
    with write_directory(path) as place:
        (place / "kept").write_bytes(b"old")
    with pytest.raises(ValueError, match="half"), write_directory(path) as place:
        (place / "new").write_bytes(b"new")
        raise ValueError("half way")
    assert content(tmp_path) == {"dir/kept": b"old"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_under_a_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NmtError, match="cannot be written"), write_directory(tmp_path / "file" / "dir"):
        pass


def test_what_is_half_written_has_a_name_that_is_cleared_away(tmp_path: Path) -> None:
    """As a process that is killed in the middle leaves it."""
    with write_file(tmp_path / "file"), write_directory(tmp_path / "dir"):
        half = list(tmp_path.iterdir())
        for path in half:
            copy = tmp_path / "killed" / path.name
            copy.parent.mkdir(exist_ok=True)
            copy.mkdir() if path.is_dir() else copy.touch()
    assert len(half) == 2
    remove_leftovers(tmp_path / "killed")
    assert list((tmp_path / "killed").iterdir()) == []


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".run.123.tmp").mkdir()
    (tmp_path / ".run.123.tmp" / "half").touch()
    (tmp_path / ".file.9.tmp").touch()
    for name in ("mine.tmp", ".hidden", "text"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".hidden", "mine.tmp", "text"]
    remove_leftovers(tmp_path / "missing")


# --- locks and digests ---


def test_a_lock_is_held_by_one_and_names_its_holder(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    with locked(lock, "training"):
        busy = pytest.raises(NmtError, match=f"process {os.getpid()} is training here")
        with busy, locked(lock, "preparing data"):
            pytest.fail("two hold the lock")
    with locked(lock, "training"):
        assert lock.read_text() == f"process {os.getpid()} is training\n"


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert sha256(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()
