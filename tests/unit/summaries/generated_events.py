"""Events for property tests: of every magnitude, of no duration, at equal times, from clocks that run
behind."""

from __future__ import annotations

import itertools

import numpy as np
from builders import make_events
from hypothesis import strategies as st

from ensembles.model.events import Call, Events

CALLS = (
    Call("pwrite", "posix", "write"),
    Call("read", "posix", "read"),
    Call("open", "posix", "open"),
    Call("fsync", "posix", "sync"),
    Call("write", "posix", "write"),
)
TASKS = 7


def events_of(**columns: np.ndarray) -> Events:
    """Events from some columns; the others are 0, and calls inside others carried by them."""
    return make_events(columns, CALLS)


@st.composite
def events(draw: st.DrawFn, least: int = 0) -> Events:
    """Events of `TASKS` tasks."""
    length = draw(st.integers(least, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = 10.0 ** draw(st.integers(0, 13))
    longest = 10.0 ** draw(st.integers(0, 13))
    start = random.integers(-int(scale), int(scale) + 1, length)
    duration = (random.random(length) ** 4 * longest).astype(np.int64)
    duration[random.random(length) < 0.2] = 0
    moved = random.integers(-1, 2**40, length) >> random.integers(0, 40, length)
    depth = random.random(length) < 0.3
    return events_of(
        start=start,
        duration=duration,
        moved=moved,
        rank=random.integers(0, TASKS, length),
        call=random.integers(0, len(CALLS), length),
        depth=depth,
        carried=depth * random.integers(0, 4, length),
    )


def parts_of(whole: Events, random: np.random.Generator) -> list[Events]:
    """The same events in another order, cut into parts, some of them empty."""
    shuffled = whole[random.permutation(len(whole))]
    cuts = np.sort(random.integers(0, len(whole) + 1, random.integers(0, 6)))
    edges = [0, *cuts.tolist(), len(whole)]
    return [shuffled[low:high] for low, high in itertools.pairwise(edges)]
