"""New run directories: where the processes of one job put their spools."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ensembles.model.errors import EnsioError


def new_run_directory(wanted: str | None, program: str) -> Path:
    """Makes the directory for a run, for its owner only.

    Parameters
    ----------
    wanted : str or None
        A path that does not exist or is an empty folder; None: ``ensio-<program>-<pid>-<UTC time>`` in the
        current folder.
    program : str
        What the run is of.

    Returns
    -------
    Path
        Absolute.

    Raises
    ------
    EnsioError
        If it cannot be made, or holds something already: two runs in one directory would be read as one.
    """
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", program) or "run"
    path = Path(wanted or f"ensio-{name}-{os.getpid()}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}").absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=wanted is not None)
        occupied = any(path.iterdir())
    except OSError as error:
        raise EnsioError(
            f"{path}: the run directory cannot be made: {error.strerror}; choose another with -o"
        ) from None
    if occupied:
        raise EnsioError(
            f"{path}: is not empty, and a run needs a directory of its own: choose another with -o"
        )
    return path


def shown(path: Path) -> str:
    """A path as a person would type it: relative to the current folder if it is inside of it."""
    current = Path.cwd()
    return str(path.relative_to(current)) if path.is_relative_to(current) and path != current else str(path)


@contextmanager
def removed_unless_made(path: Path) -> Iterator[None]:
    """Removes a new, empty run directory again if the run does not come about."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.rmdir()
        raise
