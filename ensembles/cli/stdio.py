"""Standard output and error, even if they are closed, full or not encoded in UTF-8."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text


class _ClosedOutput(io.TextIOBase):
    """Replacement of a standard output that the calling process has closed; Python sets it to None."""

    def write(self, text: str) -> NoReturn:
        raise EnsioError("standard output is closed, so the result cannot be written: redirect it to a file")


def prepare_output() -> None:
    """Let standard output accept every text; paths that are not valid UTF-8 keep their bytes."""
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        unicode = sys.stdout.encoding.lower() in ("utf-8", "utf8")
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "backslashreplace")


def discard_output() -> None:
    """Discard buffered output, which the interpreter would otherwise fail to flush when it exits."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)


def discard_unwritable_output() -> None:
    """Discard buffered output if standard output cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()


def warn(sentence: str) -> None:
    """Print a message on standard error, in one line.

    A failure to print is not raised, so that the exit status stays correct.
    """
    if sys.stderr is None:  # print would use standard output
        return
    try:
        print(f"ensio: {sanitize_text(sentence)}", file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None  # otherwise the last flush of the interpreter fails too, with status 120
