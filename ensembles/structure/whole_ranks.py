"""Goes through the chunks of a run so that the calls of each rank are together: what is counted within a
rank, such as ordinals, is known then."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import Events
from ensembles.structure.ordinals import OrdinalCounter, ordinal_of

Phase = Callable[[Events], np.ndarray]


def with_ordinals(
    chunks: Iterator[Events], most_events: int, path: str, phase: Phase | None = None
) -> Iterator[Events]:
    """The same events, which know their ordinals from now on.

    Parameters
    ----------
    chunks : iterator of Events
        In the order of ranks.
    most_events : int
        So many events of a rank are held at once; of a rank with more, ordinals are counted as chunks come.
    path : str
        Of the run.
    phase : callable, optional
        Events → phase of each: calls are counted within phases, whatever their file.

    Raises
    ------
    EnsioError
        A rank has more events, and its calls come in another order than they began.
    """
    current = None
    held: list[Events] = []
    counter: OrdinalCounter | None = None
    for chunk in chunks:
        if not len(chunk):
            continue
        rank = chunk.rank
        begin = 0
        if held or counter is not None:
            begin = int(np.searchsorted(rank, current, side="right")) if rank[0] == current else 0
            more = chunk[:begin]
            if counter is None:
                held.append(more)
                if begin == len(chunk) and sum(map(len, held)) > most_events:
                    counter = OrdinalCounter()
                    yield from (_counted(counter, piece, path, phase) for piece in held)
                    held = []
            elif begin:
                yield _counted(counter, more, path, phase)
            if begin == len(chunk):
                continue
            if held:
                yield _numbered(Events.concatenate(held), phase)
            held, counter = [], None
        current = rank[-1]
        last = int(np.searchsorted(rank, current))
        if last > begin:
            yield _numbered(chunk[begin:last], phase)
        held = [chunk[max(last, begin) :]]
    if held:
        yield _numbered(Events.concatenate(held), phase)


def _numbered(events: Events, phase: Phase | None) -> Events:
    """All events of some ranks."""
    return _knowing(events, ordinal_of(events, None if phase is None else phase(events)))


def _counted(counter: OrdinalCounter, events: Events, path: str, phase: Phase | None) -> Events:
    ordinal = counter.of(events, None if phase is None else phase(events))
    if counter.out_of_order:
        raise EnsioError(
            f"{path}: rank {events.rank[0]} made too many calls to be held at once, and some of them overlap "
            "others, so that their ordinals cannot be counted on the way: give more memory (--memory)"
        )
    return _knowing(events, ordinal)


def _knowing(events: Events, ordinal: np.ndarray) -> Events:
    return events.told_by(lambda name: ordinal if name == "ordinal" else None)
