"""XML as a stream of events with line numbers, in memory that does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NoReturn
from xml.parsers import expat

from nmt.errors import DataError
from nmt.files import open_bytes

BLOCK = 1 << 16  # bytes parsed at a time


Event = tuple[Literal["start", "end", "text"], str, dict[str, str], int]
"""What happens; the tag of the element that starts or ends, or the text; its attributes and line if it starts."""


def events(file: Path) -> Iterator[Event]:
    """Raises DataError for what is no well-formed XML, and for entities that the file itself does not define.

    Nothing outside the file is ever fetched.
    """
    found: list[Event] = []
    parser = expat.ParserCreate()

    def undefined(entity: str | None) -> NoReturn:
        raise DataError(
            f"{file}:{parser.CurrentLineNumber}: the entity {entity} is not defined in the file; write its text instead"
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        found.append(("start", tag, attributes, parser.CurrentLineNumber))

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: found.append(("end", tag, {}, 0))
    parser.CharacterDataHandler = lambda text: found.append(("text", text, {}, 0))
    parser.SkippedEntityHandler = lambda name, is_parameter: is_parameter or undefined(f"&{name};")
    parser.ExternalEntityRefHandler = lambda context, base, system_id, public_id: undefined(system_id)
    try:
        with open_bytes(file) as stream:
            while block := stream.read(BLOCK):
                parser.Parse(block, False)
                yield from found
                found.clear()
        parser.Parse(b"", True)
        yield from found
    except expat.ExpatError as error:
        raise DataError(f"{file}:{error.lineno}: is no well-formed XML: {expat.ErrorString(error.code)}") from None
    except (LookupError, ValueError) as error:  # expat knows UTF-8, UTF-16 and the encodings of one byte
        raise DataError(f"{file}: its encoding cannot be read: {error}; convert the file to UTF-8") from None
