"""How far a pass is: passes by threads of this process say it to a listener, if there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ensembles.model.events import Events


class Listener(Protocol):
    """What a program shows of passes. Threads of a pass call `advance`."""

    def begin(self, path: str, events: int) -> None:
        """A pass begins over a run with about so many events."""

    def advance(self, events: int) -> None:
        """So many further events were read."""

    def end(self) -> None:
        """The pass has ended."""


_listeners: list[Listener] = []


def listen(listener: Listener | None) -> None:
    """Choose the listener of this process; None: there is none."""
    _listeners[:] = [] if listener is None else [listener]


@contextmanager
def announced(path: str, events: int) -> Iterator[None]:
    """Announce the begin and the end of a pass."""
    for listener in _listeners:
        listener.begin(path, events)
    try:
        yield
    finally:
        for listener in _listeners:
            listener.end()


def counted(chunks: Iterator[Events]) -> Iterator[Events]:
    """Pass chunks on, and tell the listener of each."""
    if not _listeners:
        return chunks
    return _counted(chunks, _listeners[0])


def _counted(chunks: Iterator[Events], listener: Listener) -> Iterator[Events]:
    for chunk in chunks:
        events = len(chunk)
        yield chunk
        del chunk  # so that its memory can be reused for the next one
        listener.advance(events)
