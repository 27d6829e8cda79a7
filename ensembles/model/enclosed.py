"""Calls whose enclosing calls were left out, such as those of one layer below another."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import COLUMNS, SAME_CALL, Events

_LATEST = 1 << 61


def among_themselves(events: Events) -> Events:
    """Return events of a selection with depths among themselves.

    Totals and pictures count outermost calls, because a call of a library has the time and the bytes of the
    calls inside it. Of calls whose enclosing calls are left out, the outermost count.

    The same, if all calls that are inside others are inside others of these, or if none is. Otherwise calls
    that lie in no other of these calls have the depth 0, the others 1.
    """
    if not hasattr(events, "depth"):
        return events
    inside = events.depth > 0
    if not inside.any() or _are_in_the_last_outermost(events, inside):
        return events
    among = inside & _lie_in_others(events)
    if (among == inside).all():
        return events
    return _inside(events, among)


def as_outermost(events: Events) -> Events:
    """Return events of one layer: only the halves of a copy are inside each other.

    The calls of other layers around them are left out, and so their own bytes and times count. Events that
    were read without ``carried`` are in no other one. The same events are returned if none is in another.
    """
    if not any(hasattr(events, name) and getattr(events, name).any() for name in ("depth", "carried")):
        return events
    return _inside(events, getattr(events, "carried", np.zeros(len(events), np.uint8)) >= SAME_CALL)


def _inside(events: Events, among: np.ndarray) -> Events:
    """Copy events, of which these are inside others."""
    columns = {name: getattr(events, name) for name in COLUMNS if hasattr(events, name)}
    if "depth" in columns:
        columns["depth"] = among.astype(np.uint8)
    if "carried" in columns:
        columns["carried"] = np.where(among, events.carried, np.uint8(0))
    found = Events.partly(columns, events.calls, events.files, events.sites)
    found.clock_step_s = events.clock_step_s
    return found.derived_as(events)


def _are_in_the_last_outermost(events: Events, inside: np.ndarray) -> bool:
    """Whether each inner call lies in the outermost call before it: so in sorted events of whole threads."""
    places = np.arange(len(events))
    last = np.maximum.accumulate(np.where(inside, -1, places))
    inner = np.flatnonzero(inside)
    outer = last[inner]
    if outer.min() < 0:
        return False
    end = events.start + events.duration
    found = (events.rank[outer] == events.rank[inner]) & (events.thread[outer] == events.thread[inner])
    return bool((found & (events.start[outer] <= events.start[inner]) & (end[outer] >= end[inner])).all())


def _lie_in_others(events: Events) -> np.ndarray:
    """Find the calls that begin before the end of one of their thread that began earlier or is longer."""
    order = np.lexsort((events.depth, -events.duration, events.start, events.thread, events.rank))
    threads = np.stack([events.rank[order], events.thread[order]])
    number = np.concatenate([[0], np.cumsum((threads[:, 1:] != threads[:, :-1]).any(axis=0))])
    start, end = events.start[order], (events.start + events.duration)[order]
    length = int(end.max()) - int(start.min()) + 1
    if int(number[-1]) >= _LATEST // length:
        # Places among all times are smaller numbers.
        times = np.unique(np.concatenate([start, end]))
        start, end, length = np.searchsorted(times, start), np.searchsorted(times, end), len(times)
    # Threads one after the other on one axis: one running maximum serves all of them.
    before = number * length
    last_end = np.maximum.accumulate(before + end)
    found = np.zeros(len(events), np.bool_)
    found[order[1:]] = last_end[:-1] > (before + start)[1:]
    return found
