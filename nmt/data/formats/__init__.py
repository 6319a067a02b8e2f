"""Corpus formats: a file each, listed by name in FORMATS."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nmt.data.formats.demo import Demo
from nmt.data.formats.hub import Hub
from nmt.data.formats.plain import Plain
from nmt.data.formats.po import Po
from nmt.data.formats.tmx import Tmx
from nmt.data.formats.tsv import Tsv
from nmt.data.formats.unit import Format, Unit
from nmt.data.formats.wmt import Wmt

__all__ = ["FORMATS", "Format", "Unit"]

FORMATS: Mapping[str, Callable[..., Format]] = {
    "plain": Plain,
    "tsv": Tsv,
    "tmx": Tmx,
    "po": Po,
    "wmt": Wmt,
    "hub": Hub,
    "demo": Demo,
}
