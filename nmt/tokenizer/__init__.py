"""Text to token ids and back: the only user of sentencepiece."""

from nmt.tokenizer.pieces import BOS, EOS, PAD, UNK, Pieces, Side, Tokenizer, copy
from nmt.tokenizer.text import BREAKS, UNSEEN, blank, clean, clean_lines
from nmt.tokenizer.training import TOKENIZERS, Trainer

__all__ = [
    "BOS",
    "BREAKS",
    "EOS",
    "PAD",
    "TOKENIZERS",
    "UNK",
    "UNSEEN",
    "Pieces",
    "Side",
    "Tokenizer",
    "Trainer",
    "blank",
    "clean",
    "clean_lines",
    "copy",
]
