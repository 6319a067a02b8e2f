"""Text files as lines, and writes that are whole or not there at all.

Lines end at `\n` and nowhere else: `str.splitlines` and text mode also split at U+2028, form feeds and bare
carriage returns, and that shifts one side of a parallel corpus against the other.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import gzip
import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from nmt.errors import DataError, NmtError

GZIP_MAGIC = b"\x1f\x8b"


def read_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their ends; `-` is stdin; gzip is recognised by content.

    A byte order mark at the start and the `\r` of a `\r\n` are no part of a line. A last line without `\n`
    counts as a line. Raises DataError for a file that is missing, a directory, unreadable or not UTF-8.
    """
    with open_bytes(path) as stream:
        try:
            for number, raw in enumerate(stream, 1):
                if number == 1 and raw.startswith(codecs.BOM_UTF8):
                    raw = raw[len(codecs.BOM_UTF8) :]
                if raw.endswith(b"\n"):
                    raw = raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]
                elif not raw:  # the file held a byte order mark and nothing else
                    continue
                try:
                    yield raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}:{number}: byte 0x{raw[error.start]:02x} at column {error.start + 1} is not UTF-8; "
                        f"convert the file, for example: iconv -f latin1 -t utf-8"
                    ) from None
        except (zlib.error, EOFError, OSError) as error:
            raise DataError(f"{path}: cannot be read to its end: {error}") from None


@contextlib.contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked when they are gzip; `-` is stdin."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below, once it is known what it holds
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    with stream:
        if stream.peek(2)[:2] == GZIP_MAGIC:
            with gzip.open(stream) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield stream


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
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except OSError as error:
            raise NmtError(f"stdout: cannot be written: {error.strerror}") from None
        return
    path = Path(path)
    check_writable(path, overwrite)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as raw:
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
    if os.path.isfile(path) and not overwrite:
        raise NmtError(f"{path}: exists already; give another name, or --overwrite to replace it")
    if not os.path.isdir(path.parent):
        raise NmtError(f"{path}: its directory {path.parent} does not exist")
    if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):
        raise NmtError(f"{path}: cannot be written: permission denied")


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


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds an exclusive lock; the kernel frees it when its owner dies. Raises NmtError when another holds it."""
    with open(path, "a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            owner = stream.read().strip() or "another process is at work"
            raise NmtError(f"{path.parent}: {owner} here; wait for it or stop it") from None
        stream.seek(0)
        stream.truncate()
        stream.write(f"process {os.getpid()} is {what}\n")
        stream.flush()
        try:
            yield
        finally:
            stream.truncate(0)
