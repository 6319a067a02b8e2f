"""Text to token ids and back.

Special ids: pad 0, unk 1, bos 2, eos 3. They never come from text, whatever it says, but for unk where a character has
no piece.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece

from nmt.errors import CheckpointError
from nmt.tokenizer.text import clean, clean_lines

PAD, UNK, BOS, EOS = range(4)
JOINT, SRC, TGT = "tokenizer.model", "src.model", "tgt.model"


class Pieces(NamedTuple):
    """Token ids of many lines, one line after the other, each ending in eos: line i is ids[offsets[i]:offsets[i+1]]."""

    ids: np.ndarray
    offsets: np.ndarray

    def lines(self) -> list[np.ndarray]:
        return np.split(self.ids, self.offsets[1:-1]) if len(self.offsets) > 1 else []


@dataclass
class Side:
    """One vocabulary."""

    model: bytes

    def __post_init__(self) -> None:
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.LoadFromSerializedProto(self.model)
        except RuntimeError as error:
            raise CheckpointError(f"the tokenizer is not a sentencepiece model: {error}") from None
        if self.special_ids() != [PAD, UNK, BOS, EOS]:
            raise CheckpointError("the tokenizer's pad, unk, bos and eos must have the ids 0, 1, 2, 3")

    def special_ids(self) -> list[int]:
        found = self.processor
        return [found.pad_id(), found.unk_id(), found.bos_id(), found.eos_id()]

    def __len__(self) -> int:
        return int(self.processor.GetPieceSize())

    def encode(self, lines: list[str]) -> Pieces:
        # One thread: a thread of ours more is a process of its own, and more of them wait for each other.
        found = self.processor.Encode(clean_lines(lines), out_type=int, add_eos=True, num_threads=1)
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Pieces(np.fromiter(chain.from_iterable(found), np.int32, int(offsets[-1])), offsets)

    def sampler(self, alpha: float) -> Callable[[str, int], np.ndarray]:
        """(line, seed) -> one of the ways to split it, the same for the same line and seed.

        `alpha` is the rate at which BPE leaves out a merge (Provilkov et al. 2020), or how peaked the draw from a
        unigram model's lattice is (Kudo 2018).
        """
        from nmt.tokenizer.sampling import SAMPLERS

        draw = SAMPLERS[self.kind()](self.model, self.processor.Normalize, alpha)
        return lambda line, seed: np.array([*draw(clean(line), seed), EOS], np.int32)

    def kind(self) -> str:
        """unigram, bpe, word or char."""
        from nmt.tokenizer import schema  # protobuf takes long to load

        return schema.KINDS[schema.Model.FromString(self.model).trainer_spec.model_type]

    def bytewise(self) -> np.ndarray:
        """For each id whether it is a byte, for characters without a piece. Shape: [V]."""
        return np.array([self.processor.IsByte(i) for i in range(len(self))])

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self.processor.IdToPiece(int(i)) for i in ids]

    def ids(self, pieces: Iterable[str]) -> list[int]:
        return [self.processor.PieceToId(piece) for piece in pieces]

    def decode(self, ids: list[list[int]]) -> list[str]:
        return [clean(text).strip(" ") for text in self.processor.DecodeIds(ids)] if ids else []


class Tokenizer:
    """A pair of vocabularies, which may be one and the same."""

    def __init__(self, src: bytes, tgt: bytes | None = None) -> None:
        self.src = Side(src)
        self.tgt = self.src if tgt is None else Side(tgt)
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
        return self.src.encode(lines).lines()

    def encode_tgt(self, lines: list[str]) -> list[np.ndarray]:
        return self.tgt.encode(lines).lines()

    def decode(self, ids: list[list[int]]) -> list[str]:
        """Text of target ids, one line each; a broken byte sequence becomes U+FFFD."""
        return self.tgt.decode(ids)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Those of target ids."""
        return self.tgt.pieces(ids)

    def forbidden(self) -> list[int]:
        """Target ids that a translation never contains: unk, pad, bos, and the bytes of line breaks."""
        breaks = {f"<0x{ord(c):02X}>" for c in "\0\n\x0b\x0c\r\x1c\x1d\x1e"}
        size = len(self.tgt)
        return [PAD, UNK, BOS] + [
            i for i in range(size) if self.tgt.processor.IsByte(i) and self.tgt.processor.IdToPiece(i) in breaks
        ]


def copy(source: Path, target: Path) -> None:
    """Copies the tokenizer's files, byte for byte."""
    for name in (JOINT, SRC, TGT):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
