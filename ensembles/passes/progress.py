"""How far long work is: passes, written files, simulations and replays tell it to a listener, if any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ensembles.model.events import Events


class Listener(Protocol):
    """What a program shows of its work. Threads of a pass call `advance`.

    Work may begin inside other work, which goes on when it has ended.
    """

    def begin(self, work: str, path: str, total: int, unit: str) -> None:
        """Work on a path begins, such as "reading", which takes about `total` steps: "events", "parts"."""

    def advance(self, steps: int) -> None:
        """So many further steps are done."""

    def clear(self) -> None:
        """Something else writes to the terminal now; the work goes on."""

    def end(self) -> None:
        """The work has ended."""


_listeners: list[Listener] = []


def listen(listener: Listener | None) -> None:
    """Choose the listener of this process; None: there is none."""
    _listeners[:] = [] if listener is None else [listener]


def is_listened_to() -> bool:
    """Return whether this process has a listener: otherwise progress need not be asked for."""
    return bool(_listeners)


@contextmanager
def announced(work: str, path: str, total: int, unit: str = "events") -> Iterator[None]:
    """Announce the begin and the end of work (`Listener.begin`)."""
    for listener in _listeners:
        listener.begin(work, path, total, unit)
    try:
        yield
    finally:
        for listener in _listeners:
            listener.end()


def advance(steps: int) -> None:
    """Tell the listener of further steps of the work that was announced last."""
    for listener in _listeners:
        listener.advance(steps)


def clear() -> None:
    """Take away what the listener shows, before something else writes to the terminal."""
    for listener in _listeners:
        listener.clear()


def counted(chunks: Iterator[Events]) -> Iterator[Events]:
    """Pass chunks on, and tell the listener of each."""
    return _counted(chunks, _listeners[0]) if _listeners else chunks


def _counted(chunks: Iterator[Events], listener: Listener) -> Iterator[Events]:
    for chunk in chunks:
        events = len(chunk)
        yield chunk
        del chunk  # so that its memory can be reused for the next one
        listener.advance(events)
