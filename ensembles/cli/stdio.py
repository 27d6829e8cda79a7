"""Standard output and standard error, also where they are closed, full or in another encoding than UTF-8."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text


class _ClosedOutput(io.TextIOBase):
    """In place of a standard output that was closed by whoever started us; Python has none then."""

    def write(self, text: str) -> NoReturn:
        raise EnsioError("standard output is closed, and there is something to write: send it to a file")


def prepare_output() -> None:
    """Let standard output take every text: paths that are no UTF-8 are written byte for byte."""
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        unicode = sys.stdout.encoding.lower() in ("utf-8", "utf8")
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "backslashreplace")


def discard_output() -> None:
    """Forget what could not be written: else the interpreter tries again at its end, and complains."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)


def discard_unwritable_output() -> None:
    """Do so if it is standard output that cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()


def warn(sentence: str) -> None:
    """Print a message on standard error, in one line.

    Where it cannot be told, the exit status is still to be right: a failure is not raised.
    """
    if sys.stderr is None:  # where print would take standard output
        return
    try:
        print(f"ensio: {sanitize_text(sentence)}", file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None  # else the interpreter's last flush fails again, with 120
