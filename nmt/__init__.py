"""nmt: train, evaluate and use neural machine translation models.

`from nmt import Translator` is the Python interface; the command line is `nmt --help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.translate import Translator

__version__ = "0.1.0"
__all__ = ["Translator", "__version__"]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `nmt --help` does not wait for torch.
    if name == "Translator":
        from nmt.translate import Translator

        return Translator
    raise AttributeError(f"module 'nmt' has no attribute {name!r}")
