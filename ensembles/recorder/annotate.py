"""Phases and regions: names for the parts of a Python program's run.

A program that is recorded (``ensio run``, or ``LD_PRELOAD``) has them in its record; in any other, nothing
happens. This module imports nothing that takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PHASE, _BEGIN, _END = 0, 1, 2
_mark: Callable[[int, bytes], None] | None = None


def phase(name: str) -> None:
    """A phase of this process begins; it lasts until the next one begins, or to the end of the process.

    Parameters
    ----------
    name : str
        At most 255 bytes of it are kept.
    """
    (_mark or _find())(_PHASE, _bytes(name))


@contextmanager
def region(name: str) -> Iterator[None]:
    """A region of this thread: what the ``with`` block does, or each call of the function it decorates.

    Regions nest. Time in which the block waits (in a coroutine that others interrupt) belongs to it.

    Parameters
    ----------
    name : str
        At most 255 bytes of it are kept.
    """
    mark, text = _mark or _find(), _bytes(name)
    mark(_BEGIN, text)
    try:
        yield
    finally:
        mark(_END, text)


def _bytes(name: str) -> bytes:
    """The name as C takes it: UTF-8, to the first NUL."""
    return name.encode("utf-8", "surrogateescape")


def _find() -> Callable[[int, bytes], None]:
    """The recorder's function, if there is a recorder in this process."""
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
    """In place of the recorder's function."""
