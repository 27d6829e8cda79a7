"""Annotate the phases and regions of a Python program.

Annotations become part of the record if the program is recorded (``ensio run`` or ``LD_PRELOAD``). Otherwise
they do nothing. This module imports no heavy module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PHASE, _BEGIN, _END = 0, 1, 2
_mark: Callable[[int, bytes], None] | None = None


def phase(name: str) -> None:
    """Begin a phase of this process.

    The phase lasts until the next one begins, or until the process ends.

    Parameters
    ----------
    name : str
        Name of the phase; up to 255 bytes in UTF-8 are kept.

    Examples
    --------
    >>> import ensembles as en
    >>> en.phase("write checkpoint")
    """
    (_mark or _find())(_PHASE, _bytes(name))


@contextmanager
def region(name: str) -> Iterator[None]:
    """Mark a region of this thread, as a ``with`` block or as a decorator of a function.

    Regions nest. A region includes the time in which it waits, for example for another coroutine.

    Parameters
    ----------
    name : str
        Name of the region; up to 255 bytes in UTF-8 are kept.

    Returns
    -------
    context manager
        It is a decorator too.

    Examples
    --------
    >>> import ensembles as en
    >>> with en.region("solve"):
    ...     pass
    >>> @en.region("read input")
    ... def read_input():
    ...     return 42
    >>> read_input()
    42
    """
    mark, text = _mark or _find(), _bytes(name)
    mark(_BEGIN, text)
    try:
        yield
    finally:
        mark(_END, text)


def _bytes(name: str) -> bytes:
    # The recorder expects UTF-8 and stops at the first NUL.
    return name.encode("utf-8", "surrogateescape")


def _find() -> Callable[[int, bytes], None]:
    """Look up the recorder's function; a function that does nothing if there is no recorder."""
    global _mark
    if _mark is None:
        try:
            import ctypes

            function = ctypes.CDLL(None).ensio_mark
            function.argtypes, function.restype = (ctypes.c_int, ctypes.c_char_p), None
            _mark = function
        except (ImportError, OSError, AttributeError):
            _mark = _nothing
    return _mark


def _nothing(what: int, name: bytes) -> None:
    """Do nothing, in place of the recorder's function."""
