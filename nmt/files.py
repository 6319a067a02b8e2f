"""Text files as lines, and writes that are whole or not there at all.

Lines end at `\n` and nowhere else: `str.splitlines` and text mode also split at U+2028, form feeds and bare
carriage returns, and that shifts one side of a parallel corpus against the other.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import fcntl
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader
from itertools import islice
from pathlib import Path
from typing import IO, cast

from nmt.errors import BusyError, DataError, NmtError

BLOCK = 1 << 20  # bytes asked for at a time
ONLY_READ = (".xz", ".bz2", ".zst")


def called(path: str | Path) -> str:
    """What a message calls a file; `-` is stdin."""
    return "stdin" if str(path) == "-" else str(path)


def read_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their ends; packed files as `open_bytes` has them; `-` is stdin.

    A byte order mark at the start and the `\r` of a `\r\n` are no part of a line. A last line without `\n`
    counts as a line. Raises DataError for a file that is missing, a directory, unreadable or not UTF-8.
    """
    with open_bytes(path) as stream:
        done = 0
        for block in _whole_lines(stream):
            if done == 0:
                block = block.removeprefix(codecs.BOM_UTF8)
            try:
                text, fault = block.decode(), None
            except UnicodeDecodeError as error:
                text, fault = block[: block.rfind(b"\n", 0, error.start) + 1].decode(), error
            lines = _split(text)
            yield from lines
            done += len(lines)
            if fault:
                raise DataError(_not_utf8(f"{called(path)}:{done + 1}", fault))


def read_blocks(path: str | Path, lines: int) -> Iterator[bytes]:
    """Yields a file in blocks of so many lines, the last one of fewer, for `decode_lines`."""
    with open_bytes(path) as stream:
        first = True
        while block := b"".join(islice(stream, lines)):
            block = block.removeprefix(codecs.BOM_UTF8) if first else block
            if block:  # the file may hold a byte order mark and nothing else
                yield block
            first = False


def decode_lines(block: bytes, path: str | Path, first: int) -> list[str]:
    """The lines of a block that ends where a line ends. Raises DataError, naming the line; `first` is the number of
    the block's first one."""
    try:
        return _split(block.decode())
    except UnicodeDecodeError as fault:
        before = block.count(b"\n", 0, fault.start)
        raise DataError(_not_utf8(f"{path}:{first + before}", fault)) from None


def _split(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:  # what is after the last line's end is no line
        lines.pop()
    return lines


def count_lines(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))


def lines_in(path: str | Path) -> int | None:
    """How many lines a file has, where that is quickly told: not for a pipe, nor for what would have to be unpacked."""
    if not os.path.isfile(path) or packed(Path(path)):
        return None
    lines, last = 0, b"\n"
    with _open(path) as stream:
        while block := stream.read(BLOCK):
            lines, last = lines + block.count(b"\n"), block
    return lines + (not last.endswith(b"\n"))


def _whole_lines(stream: BufferedIOBase) -> Iterator[bytes]:
    """Blocks that end where a line ends. Lines that a pipe has sent do not wait for the block to fill up."""
    parts: list[bytes] = []
    while block := stream.read1(BLOCK):
        if end := block.rfind(b"\n") + 1:
            yield b"".join([*parts, block[:end]])
            parts, block = [], block[end:]
        parts.append(block)
    if rest := b"".join(parts):
        yield rest


def _not_utf8(where: str, fault: UnicodeDecodeError) -> str:
    block, start = fault.object, fault.start
    column = start - block.rfind(b"\n", 0, start)
    charset = "utf-16" if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin1"
    return (
        f"{where}: byte 0x{block[start]:02x} at column {column} is not UTF-8; "
        f"convert the file, for example: iconv -f {charset} -t utf-8"
    )


def _open_zstd(stream: BufferedIOBase) -> BufferedIOBase:
    import pyarrow  # takes long to load, and few files are zstd

    return BufferedReader(pyarrow.CompressedInputStream(stream, "zstd"))


UNPACKERS: dict[bytes, Callable[[BufferedReader], BufferedIOBase]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
    b"\x28\xb5\x2f\xfd": _open_zstd,
    b"\x50\x2a\x4d\x18": _open_zstd,  # pzstd begins with a frame that only says how long the next one is
}


@contextlib.contextmanager
def open_bytes(path: str | Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, unpacked when its content is gzip, xz, bzip2 or zstd; `-` is stdin, taken as it is.

    Raises DataError for what cannot be opened, and for what turns out to be cut off or damaged inside the block.
    """
    try:
        if str(path) == "-":
            yield _stdin()
        else:
            with _open(path) as stream, _unpacked(stream) as content:
                yield content
    except (zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(f"{called(path)}: cannot be read to its end: {error}") from None


def _stdin() -> BufferedIOBase:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("stdin: is closed; pipe text into the command, or name a file")
    return cast(BufferedIOBase, sys.stdin.buffer)


def _open(path: str | Path) -> BufferedReader:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _unpacked(stream: BufferedReader) -> BufferedIOBase:
    start = stream.peek(max(map(len, UNPACKERS)))
    unpack = next((unpack for magic, unpack in UNPACKERS.items() if start.startswith(magic)), None)
    return unpack(stream) if unpack else stream


def packed(path: Path) -> bool:
    """Whether `open_bytes` would unpack a file."""
    with _open(path) as stream:
        return stream.peek(max(map(len, UNPACKERS))).startswith(tuple(UNPACKERS))


def check_readable(path: str | Path) -> None:
    """Raises DataError now rather than after an hour of work. A pipe is believed: looking would take from it."""
    if os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path):
        with open_bytes(path):
            pass


@contextlib.contextmanager
def write_file(path: str | Path, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """A binary stream whose content appears at `path` only when the block ends without an error.

    `-` is stdout; a name that ends in .gz is compressed. What is no regular file (a pipe, /dev/null) is written
    directly, since it cannot be replaced.
    """
    if str(path) == "-":
        if sys.stdout is None or sys.stdout.closed:
            raise NmtError("stdout: is closed; name a file to write, or leave it open")
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except OSError as error:
            raise NmtError(f"stdout: cannot be written: {error.strerror}") from None
        return
    path = Path(path)
    check_writable(path, overwrite)
    if os.path.exists(path) and not os.path.isfile(path):
        try:
            with open(path, "wb") as stream:
                yield stream
        except OSError as error:
            raise NmtError(f"{path}: cannot be written: {error.strerror}") from None
        return
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as raw:
            with contextlib.suppress(OSError):  # not all file systems have locks
                fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            else:
                yield raw
            sync(raw)
        os.replace(temporary, path)
    except OSError as error:
        raise NmtError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Deletes what killed processes have left of writing a file: nobody holds the lock on it any more."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.\d+\.tmp")
    for other in path.parent.glob(".*.tmp"):
        if ours.fullmatch(other.name):
            with contextlib.suppress(OSError), open(other, "rb+") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                other.unlink()


def append_line(path: Path, line: str) -> None:
    """Adds a line to a log. Raises NmtError when the disk refuses."""
    try:
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(line + "\n")
    except OSError as error:
        raise NmtError(f"{path}: cannot be written: {error.strerror}") from None


def check_writable(path: str | Path, overwrite: bool = True) -> None:
    """Raises NmtError if a file could not be written there."""
    path = Path(path)
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # what is in the way is said below
    except OSError as error:  # a name too long, a directory that may not be searched
        raise NmtError(f"{path}: cannot be written: {error.strerror}") from None
    if os.path.isdir(path):
        raise NmtError(f"{path}: is a directory, expected a file to write")
    if path.suffix in ONLY_READ:
        raise NmtError(f"{path}: {path.suffix} is read but not written; name it .gz, or pack what is written to stdout")
    if os.path.isfile(path) and not overwrite:
        raise NmtError(f"{path}: exists already; give another name, or --overwrite to replace it")
    if not os.path.isdir(path.parent):
        raise NmtError(f"{path}: its directory {path.parent} does not exist")
    if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
        raise NmtError(f"{path}: cannot be written: permission denied")


def check_apart(*paths: str | None) -> None:
    """Raises NmtError if two of the files that a command reads and writes are one. None and `-` are no files."""
    seen: set[str] = set()
    for path in paths:
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue  # /dev/null and the like may be named as often as one likes
        real = os.path.realpath(path)
        if real in seen:
            raise NmtError(f"{path}: is named twice; give everything that is read or written a file of its own")
        seen.add(real)


def sync(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


@contextlib.contextmanager
def write_directory(path: Path) -> Iterator[Path]:
    """A temporary sibling that becomes `path`, whole and flushed to disk, when the block ends without an error.

    An older directory of that name is replaced. Raises NmtError when the disk refuses.
    """
    temporary, old = (path.with_name(f".{path.name}.{os.getpid()}{kind}.tmp") for kind in ("", ".old"))
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with open(file, "rb+") as stream:
                    sync(stream)
        if path.exists():
            os.replace(path, old)
        os.replace(temporary, path)
        _sync_directory(path.parent)
    except OSError as error:
        raise NmtError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        for rest in (temporary, old):
            shutil.rmtree(rest, ignore_errors=True)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_directory(path: Path) -> None:
    """Deletes a directory so that, whenever the process dies, it is there whole or gone by its name."""
    doomed = path.with_name(f".{path.name}.{os.getpid()}.doomed.tmp")
    os.replace(path, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Deletes what a killed process left half-written, or half deleted, anywhere in `directory`."""
    for path in list(directory.rglob(".*.tmp")):
        replaced = path.parent / path.name.removeprefix(".").rsplit(".", 3)[0]
        if path.name.endswith(".old.tmp") and not replaced.exists():
            os.replace(path, replaced)  # its process died between moving the old one away and the new one in
        elif path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_space(directory: Path, needed: int) -> None:
    """Raises NmtError if less than `needed` bytes are free where a directory is, or is to be made."""
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise NmtError(f"{directory}: needs about {needed / 1e6:,.1f} MB, but only {free / 1e6:,.1f} MB are free there")


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds an exclusive lock; the kernel frees it when its owner dies. Raises BusyError when another holds it."""
    with open(path, "a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lost = not path.exists() or path.stat().st_ino != os.fstat(stream.fileno()).st_ino
        except BlockingIOError:
            lost = True
        if lost:  # somebody else has it, or has just taken the file away
            stream.seek(0)
            owner = stream.read().strip() or "another process is at work"
            raise BusyError(f"{path.parent}: {owner} here; wait for it or stop it") from None
        stream.seek(0)
        stream.truncate()
        stream.write(f"process {os.getpid()} is {what}\n")
        stream.flush()
        try:
            yield
        finally:
            stream.truncate(0)
