"""Where a vocabulary comes from: trained on text, or a sentencepiece model that exists."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import sentencepiece

from nmt.choice import Count, Range
from nmt.errors import DataError
from nmt.files import open_bytes
from nmt.tokenizer.pieces import BOS, EOS, PAD, UNK, Tokenizer
from nmt.tokenizer.text import blank, clean

Size = Annotated[int, Range(ge=5, le=2**31 - 1)]  # the special pieces and one more
AUTO_BYTES = 4000  # pieces from which on byte fallback pays: it takes 256 of them


@dataclass
class _Recipe:
    """How a vocabulary is trained."""

    kind: str
    vocab_size: int
    byte_fallback: Literal["auto"] | bool
    normalization: str
    split_digits: bool
    symbols: list[str]

    def train(self, lines: Iterable[str], what: str, say: Callable[[str], None]) -> bytes:
        """A size too large for the text is lowered, and said. `lines` can be read more than once."""
        size, options = self.vocab_size, self._options()
        if size < 5:
            raise DataError(f"tokenizer.vocab_size must be at least 5, but is {size} instead")
        if next(_usable(lines), None) is None:
            raise DataError(f"tokenizer: cannot be trained, since {what} holds no visible character")
        try:
            return _sentencepiece(lines, size, options)
        except RuntimeError as error:
            message = str(error)
        usable = re.search(r"Vocabulary size too high.*?<= (\d+)", message, re.S)
        if usable:
            say(
                f"tokenizer: the text of {what} allows at most {usable[1]} pieces, fewer than vocab_size {size}; "
                f"using {usable[1]}"
            )
            return _sentencepiece(lines, int(usable[1]), options)
        if "required_chars" in message or "smaller than" in message:
            characters = set().union(*map(set, _usable(lines))) - {" "}
            needed = len(characters) + 5 + 256 * options["byte_fallback"] + len(self.symbols)
            raise DataError(
                f"tokenizer.vocab_size {size} is too small: {what} needs at least {needed} pieces for its characters; "
                "raise tokenizer.vocab_size"
            )
        raise DataError(f"tokenizer: cannot be trained on {what}: {message.strip().splitlines()[-1]}")

    def _options(self) -> dict[str, Any]:
        automatic = self.kind in ("bpe", "unigram") and self.vocab_size >= AUTO_BYTES
        use_bytes = automatic if self.byte_fallback == "auto" else self.byte_fallback
        options = {
            "model_type": self.kind,
            "byte_fallback": use_bytes,
            # With bytes to fall back on, the rarest characters need no piece of their own.
            "character_coverage": 0.9995 if use_bytes else 1.0,
            "normalization_rule_name": self.normalization,
            "split_digits": self.split_digits,
            "user_defined_symbols": self.symbols,
            "max_sentence_length": 100_000,
            "num_threads": 4,  # a fixed number: sums over threads are part of the result
            "minloglevel": 2,
            "pad_id": PAD,
            "unk_id": UNK,
            "bos_id": BOS,
            "eos_id": EOS,
            # Names that no text can hold: sentencepiece passes over them when it learns from text.
            **{f"{name}_piece": f"\x01{name}" for name in ("pad", "unk", "bos", "eos")},
        }
        if self.kind in ("word", "char"):
            options |= {"use_all_vocab": False, "hard_vocab_limit": False}
        return options


def _usable(lines: Iterable[str]) -> Iterator[str]:
    # sentencepiece's own sign for a space is a space to it.
    return (cleaned for line in lines if not blank((cleaned := clean(line)).replace("\u2581", "")))


def _sentencepiece(lines: Iterable[str], size: int, options: dict[str, Any]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=_usable(lines), model_writer=model, vocab_size=size, **options
    )
    return model.getvalue()


class Trainer(Protocol):
    """Makes a tokenizer; `joint` if both sides share it, from `sample` pairs at most."""

    joint: bool
    sample: int

    def __call__(
        self, src: Iterable[str], tgt: Iterable[str], say: Callable[[str], None], tags: Iterable[str] = ()
    ) -> Tokenizer:
        """From the lines of both sides, which can be read more than once. `tags` become pieces of their own."""

    def inputs(self) -> list[Path]:
        """The files that it reads."""

    def check(self) -> None:
        """Raises DataError if these files will not do, before any text is read."""


class _Subwords:
    """Trains one vocabulary on both sides, or one on each."""

    kind = ""

    def __init__(
        self,
        *,
        vocab_size: Size = 10_000,
        joint: bool = True,
        byte_fallback: Literal["auto"] | bool = "auto",
        normalization: Literal["identity", "nfkc", "nfkc_cf"] = "identity",
        split_digits: bool = False,
        symbols: list[str] = [],  # noqa: B006 - a list, as YAML has it, that nobody changes
        sample: Count = 1_000_000,
    ) -> None:
        self.joint, self.sample = joint, sample
        self.recipe = _Recipe(self.kind, vocab_size, byte_fallback, normalization, split_digits, list(symbols))
        odd = next((symbol for symbol in symbols if blank(symbol) or symbol != "".join(clean(symbol).split())), None)
        if odd is not None:
            raise DataError(f"tokenizer.symbols: {odd!r} must be visible and without white space")

    def __call__(
        self, src: Iterable[str], tgt: Iterable[str], say: Callable[[str], None], tags: Iterable[str] = ()
    ) -> Tokenizer:
        recipe = dataclasses.replace(self.recipe, symbols=list(dict.fromkeys([*self.recipe.symbols, *tags])))
        if self.joint:
            return Tokenizer(recipe.train(_Both(src, tgt), "both sides", say))
        return Tokenizer(recipe.train(src, "the source side", say), recipe.train(tgt, "the target side", say))

    def inputs(self) -> list[Path]:
        return []

    def check(self) -> None:
        pass


@dataclass
class _Both:
    """Lines of both sides, that can be read more than once."""

    src: Iterable[str]
    tgt: Iterable[str]

    def __iter__(self) -> Iterator[str]:
        yield from self.src
        yield from self.tgt


class Bpe(_Subwords):
    """Byte-pair encoding (Sennrich et al. 2016)."""

    kind = "bpe"


class Unigram(_Subwords):
    """The unigram language model (Kudo 2018)."""

    kind = "unigram"


class Char(_Subwords):
    """A piece for each character."""

    kind = "char"

    def __init__(
        self,
        *,
        vocab_size: Size = 10_000,
        joint: bool = True,
        normalization: Literal["identity", "nfkc", "nfkc_cf"] = "identity",
        symbols: list[str] = [],  # noqa: B006 - as above
        sample: Count = 1_000_000,
    ) -> None:
        super().__init__(
            vocab_size=vocab_size,
            joint=joint,
            byte_fallback=False,
            normalization=normalization,
            symbols=symbols,
            sample=sample,
        )


class Words(_Subwords):
    """No segmentation: the text is tokenised already and split at its spaces. Rare words become unk."""

    kind = "word"

    def __init__(self, *, vocab_size: Size = 10_000, joint: bool = True, sample: Count = 1_000_000) -> None:
        super().__init__(vocab_size=vocab_size, joint=joint, byte_fallback=False, sample=sample)


class Ready:
    """A sentencepiece model that exists, trained by whatever program; `tgt` if the target side has its own."""

    def __init__(self, *, src: str, tgt: str | None = None) -> None:
        self.files = [Path(name).expanduser() for name in (src, tgt) if name is not None]
        self.joint, self.sample = tgt is None, 0

    def __call__(
        self, src: Iterable[str], tgt: Iterable[str], say: Callable[[str], None], tags: Iterable[str] = ()
    ) -> Tokenizer:
        return Tokenizer(*map(_read, self.files))

    def inputs(self) -> list[Path]:
        return self.files

    def check(self) -> None:
        self((), (), lambda _: None)


def _read(file: Path) -> bytes:
    with open_bytes(file) as stream:
        try:
            return _with_our_ids(stream.read())
        except ValueError as error:
            raise DataError(f"{file}: {error}") from None


def _with_our_ids(model: bytes) -> bytes:
    """The same model with pad, unk, bos and eos at 0, 1, 2, 3. Raises ValueError if it is no sentencepiece model."""
    from google.protobuf.message import DecodeError

    from nmt.tokenizer import schema  # protobuf takes long to load

    proto = schema.Model()
    try:
        proto.ParseFromString(model)
    except DecodeError:
        raise ValueError("is not a sentencepiece model") from None
    unknown = [piece for piece in proto.pieces if piece.type == schema.UNKNOWN]
    if len(unknown) != 1:
        raise ValueError("is not a sentencepiece model: it has no piece for the unknown")
    spec = proto.trainer_spec
    ids = (spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id)
    if ids == (PAD, UNK, BOS, EOS) and proto.pieces[UNK].type == schema.UNKNOWN:
        return model
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, BOS, EOS
    spec.pad_piece, spec.bos_piece, spec.eos_piece = "<pad>", "<s>", "</s>"
    spec.unk_piece = unknown[0].piece
    special = {"<pad>": None, unknown[0].piece: unknown[0], "<s>": None, "</s>": None}
    rest = [piece for piece in proto.pieces if piece.piece not in special]
    pieces = []
    for name, piece in special.items():
        kept = schema.Piece(piece=name, score=0.0, type=schema.CONTROL)
        if piece is not None:
            kept.CopyFrom(piece)
        pieces.append(kept)
    del proto.pieces[:]
    proto.pieces.extend([*pieces, *rest])
    spec.vocab_size = len(proto.pieces)
    return bytes(proto.SerializeToString())


TOKENIZERS: Mapping[str, Callable[..., Trainer]] = {
    "bpe": Bpe,
    "unigram": Unigram,
    "char": Char,
    "none": Words,
    "ready": Ready,
}
