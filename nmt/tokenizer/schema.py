"""What a sentencepiece model file looks like, as far as this program reads and rewrites it; all else is kept as it is.

sentencepiece comes with generated code for the whole of it, which loads with one major version of protobuf only, and
does not say so to pip. Numbers and defaults are those of its sentencepiece_model.proto.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6  # types of a piece
KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}

_Field = descriptor_pb2.FieldDescriptorProto
_INT, _TEXT, _FLOAT = _Field.TYPE_INT32, _Field.TYPE_STRING, _Field.TYPE_FLOAT
# Of each message: name, number, type (or the message that it holds), default.
_MESSAGES: dict[str, list[tuple[str, int, int | str, str]]] = {
    "Piece": [("piece", 1, _TEXT, ""), ("score", 2, _FLOAT, "0"), ("type", 3, _INT, str(NORMAL))],
    "TrainerSpec": [
        ("model_type", 3, _INT, "1"),
        ("vocab_size", 4, _INT, "8000"),
        ("unk_id", 40, _INT, "0"),
        ("bos_id", 41, _INT, "1"),
        ("eos_id", 42, _INT, "2"),
        ("pad_id", 43, _INT, "-1"),
        ("unk_piece", 45, _TEXT, "<unk>"),
        ("bos_piece", 46, _TEXT, "<s>"),
        ("eos_piece", 47, _TEXT, "</s>"),
        ("pad_piece", 48, _TEXT, "<pad>"),
    ],
    "Model": [("pieces", 1, "Piece", ""), ("trainer_spec", 2, "TrainerSpec", "")],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="nmt/sentencepiece.proto", package="nmt", syntax="proto2")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, number, kind, default in fields:
            label = _Field.LABEL_REPEATED if name == "pieces" else _Field.LABEL_OPTIONAL
            field = made.field.add(name=name, number=number, label=label)
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".nmt.{kind}"
            else:
                field.type, field.default_value = kind, default
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = {message: pool.FindMessageTypeByName(f"nmt.{message}") for message in _MESSAGES}
    return {message: message_factory.GetMessageClass(found) for message, found in names.items()}


_made = _classes()
Model, Piece = _made["Model"], _made["Piece"]
