"""nmt config"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import end_with_the_reader, put

PACKAGE = Path(__file__).parent.parent


def config(name: Annotated[str, typer.Argument(metavar="NAME", help="demo, multi30k, base, reference, …")]) -> None:
    """Print a config that comes with the program, to start your own from."""
    from nmt.choice import did_you_mean
    from nmt.errors import ConfigError

    end_with_the_reader()

    # A wheel carries the configs inside the package; in a checkout they lie beside it.
    directory = next(d for d in (PACKAGE / "configs", PACKAGE.parent / "configs") if d.is_dir())
    known = sorted(path.stem for path in directory.glob("*.yaml"))
    if name not in known:
        raise ConfigError(f"there is no config `{name}`{did_you_mean(name, known)}; there are {', '.join(known)}")
    put((directory / f"{name}.yaml").read_text(encoding="utf-8"))
