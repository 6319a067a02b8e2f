"""Corpus formats: a file each, listed by name in FORMATS."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nmt.data.formats.demo import Demo
from nmt.data.formats.hub import Hub
from nmt.data.formats.plain import Plain
from nmt.data.formats.tsv import Tsv
from nmt.data.formats.unit import Corpus, Unit

__all__ = ["FORMATS", "Corpus", "Unit"]

FORMATS: Mapping[str, Callable[..., Corpus]] = {"plain": Plain, "tsv": Tsv, "hub": Hub, "demo": Demo}
