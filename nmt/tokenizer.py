"""Text to token ids and back: the only user of sentencepiece.

Special ids: pad 0, unk 1, bos 2, eos 3. They never come from text, whatever it says, but for unk where a character has
no piece.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import sentencepiece

from nmt.choice import Range
from nmt.errors import CheckpointError, DataError

PAD, UNK, BOS, EOS = range(4)
Size = Annotated[int, Range(ge=5, le=2**31 - 1)]  # the special pieces and one more
JOINT, SRC, TGT = "tokenizer.model", "src.model", "tgt.model"
AUTO_BYTES = 4000  # pieces from which on byte fallback pays: it takes 256 of them

# What some program somewhere takes for a line break, and other control characters. None may be in a line of output.
BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029]")
UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff]")


def clean(text: str) -> str:
    """A line without characters that break lines (they become spaces) or that nobody sees (NUL, U+FEFF: removed)."""
    return UNSEEN.sub("", BREAKS.sub(" ", text))


def blank(text: str) -> bool:
    """Whether a line shows nothing: empty, or only white space, control and zero-width characters."""
    return all(c.isspace() or unicodedata.category(c) in ("Cf", "Cc") for c in text)


@dataclass
class _Side:
    """One vocabulary."""

    model: bytes

    def __post_init__(self) -> None:
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.LoadFromSerializedProto(self.model)
        except RuntimeError as error:
            raise CheckpointError(f"the tokenizer is not a sentencepiece model: {error}") from None
        if [self.processor.pad_id(), self.processor.unk_id(), self.processor.bos_id(), self.processor.eos_id()] != [
            PAD,
            UNK,
            BOS,
            EOS,
        ]:
            raise CheckpointError("the tokenizer's pad, unk, bos and eos must have the ids 0, 1, 2, 3")

    def __len__(self) -> int:
        return int(self.processor.GetPieceSize())

    def encode(self, lines: list[str]) -> list[np.ndarray]:
        cleaned = [clean(line) for line in lines]
        return [np.array([*ids, EOS], dtype=np.int32) for ids in self.processor.EncodeAsIds(cleaned)]


class Tokenizer:
    """A pair of vocabularies, which may be one and the same."""

    def __init__(self, src: bytes, tgt: bytes | None = None) -> None:
        self.src = _Side(src)
        self.tgt = self.src if tgt is None else _Side(tgt)
        self.joint = tgt is None

    @classmethod
    def load(cls, directory: Path) -> Tokenizer:
        """From the files that `save` wrote. Raises CheckpointError when there are none."""
        try:
            if (directory / JOINT).exists():
                return cls((directory / JOINT).read_bytes())
            return cls((directory / SRC).read_bytes(), (directory / TGT).read_bytes())
        except OSError:
            raise CheckpointError(f"{directory}: holds no tokenizer ({JOINT}, or {SRC} and {TGT})") from None

    def save(self, directory: Path) -> None:
        if self.joint:
            (directory / JOINT).write_bytes(self.src.model)
        else:
            (directory / SRC).write_bytes(self.src.model)
            (directory / TGT).write_bytes(self.tgt.model)

    def digest(self) -> str:
        return hashlib.sha256(self.src.model + b"\0" + self.tgt.model).hexdigest()[:12]

    def encode_src(self, lines: list[str]) -> list[np.ndarray]:
        """Ids of each line, eos at the end."""
        return self.src.encode(lines)

    def encode_tgt(self, lines: list[str]) -> list[np.ndarray]:
        return self.tgt.encode(lines)

    def decode(self, ids: list[list[int]]) -> list[str]:
        """Text of target ids, one line each; a broken byte sequence becomes U+FFFD."""
        return [clean(text).strip(" ") for text in self.tgt.processor.DecodeIds(ids)] if ids else []

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self.tgt.processor.IdToPiece(int(i)) for i in ids]

    def forbidden(self) -> list[int]:
        """Target ids that a translation never contains: unk, pad, bos, and the bytes of line breaks."""
        breaks = {f"<0x{ord(c):02X}>" for c in "\0\n\x0b\x0c\r\x1c\x1d\x1e"}
        size = len(self.tgt)
        return [PAD, UNK, BOS] + [
            i for i in range(size) if self.tgt.processor.IsByte(i) and self.tgt.processor.IdToPiece(i) in breaks
        ]


def train(
    kind: str,
    src: list[str],
    tgt: list[str],
    say: Callable[[str], None],
    *,
    vocab_size: int,
    joint: bool,
    byte_fallback: Any,
) -> Tokenizer:
    """Trains one vocabulary on both sides, or one on each. A size too large for the text is lowered, and said."""
    if joint:
        return Tokenizer(_train(kind, [*src, *tgt], "both sides", say, vocab_size, byte_fallback))
    return Tokenizer(
        _train(kind, src, "the source side", say, vocab_size, byte_fallback),
        _train(kind, tgt, "the target side", say, vocab_size, byte_fallback),
    )


def _train(kind: str, lines: list[str], what: str, say: Callable[[str], None], size: int, byte_fallback: Any) -> bytes:
    use_bytes = kind in ("bpe", "unigram") and (size >= AUTO_BYTES if byte_fallback == "auto" else bool(byte_fallback))
    options = {
        "model_type": kind,
        "byte_fallback": use_bytes,
        # With bytes to fall back on, the rarest characters need no piece of their own.
        "character_coverage": 0.9995 if use_bytes else 1.0,
        "normalization_rule_name": "identity",
        "max_sentence_length": 100_000,
        "num_threads": 4,  # a fixed number: sums over threads are part of the result
        "minloglevel": 2,
        "pad_id": PAD,
        "unk_id": UNK,
        "bos_id": BOS,
        "eos_id": EOS,
    }
    if kind in ("word", "char"):
        options |= {"use_all_vocab": False, "hard_vocab_limit": False}
    # sentencepiece's own sign for a space is a space to it.
    text = [cleaned for line in lines if not blank((cleaned := clean(line)).replace("\u2581", ""))]
    if not text:
        raise DataError(f"tokenizer: cannot be trained, since {what} holds no visible character")
    if size < 5:
        raise DataError(f"tokenizer.vocab_size must be at least 5, but is {size} instead")
    try:
        return _sentencepiece(text, size, options)
    except RuntimeError as error:
        message = str(error)
    usable = re.search(r"Vocabulary size too high.*?<= (\d+)", message, re.S)
    if usable:
        say(
            f"tokenizer: the text of {what} allows at most {usable[1]} pieces, fewer than vocab_size {size}; "
            f"using {usable[1]}"
        )
        return _sentencepiece(text, int(usable[1]), options)
    if "required_chars" in message or "smaller than" in message:
        needed = len(set("".join(text).replace(" ", ""))) + 5 + 256 * use_bytes
        raise DataError(
            f"tokenizer.vocab_size {size} is too small: {what} needs at least {needed} pieces for its characters; "
            "raise tokenizer.vocab_size"
        )
    raise DataError(f"tokenizer: cannot be trained on {what}: {message.strip().splitlines()[-1]}")


def _sentencepiece(text: list[str], size: int, options: dict[str, Any]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(text), model_writer=model, vocab_size=size, **options
    )
    return model.getvalue()


def copy(source: Path, target: Path) -> None:
    """Copies the tokenizer's files, byte for byte."""
    for name in (JOINT, SRC, TGT):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


class _Trainer:
    """A kind of vocabulary with its options; called with text, trains it."""

    kind = ""

    def __init__(
        self, *, vocab_size: Size = 10_000, joint: bool = True, byte_fallback: Literal["auto"] | bool = "auto"
    ) -> None:
        self.vocab_size, self.joint, self.byte_fallback = vocab_size, joint, byte_fallback

    def __call__(self, src: list[str], tgt: list[str], say: Callable[[str], None]) -> Tokenizer:
        return train(
            self.kind, src, tgt, say, vocab_size=self.vocab_size, joint=self.joint, byte_fallback=self.byte_fallback
        )


class Bpe(_Trainer):
    """Byte-pair encoding (Sennrich et al. 2016)."""

    kind = "bpe"


class Unigram(_Trainer):
    """The unigram language model (Kudo 2018)."""

    kind = "unigram"


class Char(_Trainer):
    """A piece for each character."""

    kind = "char"

    def __init__(self, *, vocab_size: Size = 10_000, joint: bool = True) -> None:
        super().__init__(vocab_size=vocab_size, joint=joint, byte_fallback=False)


class Words(Char):
    """No segmentation: the text is tokenised already and split at its spaces. Rare words become unk."""

    kind = "word"


TOKENIZERS: Mapping[str, Callable[..., _Trainer]] = {"bpe": Bpe, "unigram": Unigram, "char": Char, "none": Words}
