"""Make run directories, in which the processes of one job record."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ensembles.files.atomic_write import followed
from ensembles.model.errors import EnsioError


def new_run_directory(wanted: str | None, program: str, extend: bool = False) -> Path:
    """Make a run directory that only its owner can access.

    Parameters
    ----------
    wanted : str or None
        A path that does not exist or is an empty folder. None: ``ensio-<program>-<pid>-<UTC time>`` in the
        current folder.

    Raises
    ------
    EnsioError
        The directory cannot be made, lies behind a link that is not `followed`, or is not empty and not to
        be extended.
    """
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", program) or "run"
    path = Path(wanted or f"ensio-{name}-{os.getpid()}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}").absolute()
    try:
        followed(str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=wanted is not None)
        occupied = any(path.iterdir()) and not extend
    except OSError as error:
        raise EnsioError(
            f"{path}: the run directory cannot be made: {error.strerror}; choose another with -o"
        ) from None
    if occupied:
        raise EnsioError(
            f"{path}: is not empty: choose another directory with -o, or add a run to it with "
            "ensio run --extend"
        )
    return path


def shown(path: Path) -> str:
    """Return a path for display: relative to the current folder if it lies inside it."""
    current = Path.cwd()
    return str(path.relative_to(current)) if path.is_relative_to(current) and path != current else str(path)


@contextmanager
def removed_unless_made(path: Path) -> Iterator[None]:
    """Remove a new, empty run directory if the ``with`` block fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.rmdir()
        raise
