"""Chunks of whole ranks, for quantities counted within a rank, such as ordinals."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ensembles.model.events import Events

Compute = Callable[[Events], Events]


def chunks_by_rank(
    chunks: Iterator[Events], most_events: int, whole: Compute, partial: Callable[[], Compute]
) -> Iterator[Events]:
    """Apply functions to all calls of one or more ranks at a time.

    Parameters
    ----------
    most_events : int
        Largest number of events of a rank that are held at once.
    partial : callable
        Makes a function for a rank with more events: it is called with the chunks of this rank, in order.

    Yields
    ------
    Events
        Results of `whole`, and of the functions that `partial` made, in the order of ranks.
    """
    current = -1
    held: list[Events] = []
    compute: Compute | None = None
    for chunk in chunks:
        if not len(chunk):
            continue
        rank = chunk.rank
        begin = 0
        if held or compute is not None:
            begin = int(np.searchsorted(rank, current, side="right")) if rank[0] == current else 0
            more = chunk[:begin]
            if compute is None:
                held.append(more)
                if begin == len(chunk) and sum(map(len, held)) > most_events:
                    compute = partial()
                    yield from map(compute, held)
                    held = []
            elif begin:
                yield compute(more)
            if begin == len(chunk):
                continue
            if held:
                yield whole(Events.concatenate(held))
            held, compute = [], None
        current = int(rank[-1])
        last = int(np.searchsorted(rank, current))
        if last > begin:
            yield whole(chunk[begin:last])
        held = [chunk[max(last, begin) :]]
    if held:
        yield whole(Events.concatenate(held))
