"""The errors that a user sees: one line saying what, where, what was expected, and how to mend it.

Anything raised that is not an `NmtError` is a bug of ours and shows its traceback.
"""

from typing import Self


class NmtError(Exception):
    """A mistake that the user can mend; the command prints it and exits with code 2."""


class ConfigError(NmtError):
    """A config that cannot be used; its message may hold one problem a line."""


class BusyError(NmtError):
    """A run directory that another process is at work in."""


class DataError(NmtError):
    """Text that cannot be read, paired or used."""


class CheckpointError(NmtError):
    """A model or run directory that cannot be loaded or continued."""


class NotFiniteError(NmtError):
    """A model whose results are no numbers."""

    @classmethod
    def at_line(cls, number: int) -> Self:
        return cls(
            f"line {number}: the model's scores are no finite numbers, since its training diverged; "
            "use another checkpoint"
        )


class DeviceError(NmtError):
    """A device or precision that this machine does not have."""
