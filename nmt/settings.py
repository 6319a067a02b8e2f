"""A YAML file as a dataclass of settings, and the place of every key, so that a message can name it.

pydantic checks the types while a file is loaded and is needed for nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nmt.choice import describe, did_you_mean
from nmt.errors import ConfigError
from nmt.files import open_bytes
from nmt.strict_yaml import KeyPath, dotted, parse_yaml

Schema = TypeVar("Schema")
STRICT = {"extra": "forbid", "strict": True}  # of every dataclass that is read so


@dataclass
class Source:
    """A file as read, before its types are checked, with the place of every key."""

    file: str
    tree: Any
    places: dict[KeyPath, str]

    def place(self, path: KeyPath) -> str:
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, self.file)


def read(file: str | Path) -> Source:
    """Raises ConfigError for what is no mapping."""
    with open_bytes(file) as stream:
        try:
            text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file}: is not UTF-8 text: {error.reason} at byte {error.start}") from None
    places: dict[KeyPath, str] = {(): str(file)}
    tree = parse_yaml(text, str(file), places)
    if not isinstance(tree, dict):
        raise ConfigError(f"{file}: expected a mapping of settings at the top of the file")
    return Source(str(file), tree, places)


def checked(schema: type[Schema], source: Source) -> Schema:
    """A dataclass of settings from what was read. Raises ConfigError with all that is unknown or of a wrong type."""
    import pydantic

    try:
        # JSON mode is what lets strict types and mappings for dataclasses go together.
        return pydantic.TypeAdapter(schema).validate_json(json.dumps(source.tree), strict=True)
    except pydantic.ValidationError as error:
        raise ConfigError("\n".join(_explain(error, source, schema))) from None


def _explain(error: Any, source: Source, schema: type) -> list[str]:
    """One line per wrong key: where, what, what was expected."""
    wrong: dict[KeyPath, list[str]] = {}
    for item in error.errors(include_url=False):
        path = _known_part(item["loc"], source.tree, missing=item["type"] == "missing")
        wrong.setdefault(path, []).append(_sentence(item, path, schema))
    return [
        f"{source.place(path)}: `{dotted(path)}` " + " or ".join(dict.fromkeys(sentences))
        for path, sentences in wrong.items()
    ]


def _known_part(location: KeyPath, tree: Any, missing: bool) -> KeyPath:
    """Cuts the tags that pydantic appends for members of a union."""
    path: list[str | int] = []
    for key in location:
        if (isinstance(tree, dict) and key in tree) or (isinstance(tree, list) and key in range(len(tree))):
            tree = tree[typing.cast(int, key)]
        elif missing and isinstance(tree, dict):
            return (*path, key)
        else:
            break
        path.append(key)
    return tuple(path)


def _sentence(item: dict[str, Any], path: KeyPath, schema: type) -> str:
    kind = item["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        names = [entry.name for entry in dataclasses.fields(_hint(path[:-1], schema))]
        return f"is no setting here{did_you_mean(str(path[-1]), names)}; known are: {', '.join(names)}"
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(item["ctx"]["error"])
    return f"must be {describe(_hint(path, schema))}, but is {item['input']!r} instead"


def _hint(path: KeyPath, schema: type) -> Any:
    """The type of what stands at a path."""
    hint: Any = schema
    for key in path:
        if typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        if dataclasses.is_dataclass(hint):
            hint = typing.get_type_hints(hint, include_extras=True)[str(key)]
        else:  # a list or a mapping
            hint = typing.get_args(hint)[-1]
    return hint
