"""Calls whose enclosing calls were left out, such as those of one layer below another."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import COLUMNS, Events


def among_themselves(events: Events) -> Events:
    """Return events that are all inside other calls with depths among themselves.

    Totals and pictures count outermost calls, because a call of a library has the time and the bytes of the
    calls inside it. Of a selection without the calls around it, the outermost of the selected calls count.

    Parameters
    ----------
    events : Events

    Returns
    -------
    Events
        The same, if one of them is inside no other recorded call, or if there are none. Otherwise calls that
        lie in no other of these calls have the depth 0, the others 1.

    Examples
    --------
    >>> from ensembles.model.enclosed import among_themselves
    >>> from ensembles.model.events import Call, Events
    >>> columns = {"rank": [0, 0], "thread": [0, 0], "call": [0, 0], "depth": [1, 1], "start": [0, 10]}
    >>> columns |= {"duration": [5, 5], "offset": [0, 4], "requested": [4, 4], "moved": [4, 4]}
    >>> columns |= {"file": [0, 0], "error": [0, 0]}
    >>> columns = {name: np.array(values) for name, values in columns.items()}
    >>> inner = Events(columns, [Call("pwrite", "posix", "write")], [""])
    >>> among_themselves(inner).depth
    array([0, 0], dtype=uint8)
    """
    if not len(events) or not (events.depth > 0).all():
        return events
    end = events.start + events.duration
    order = np.lexsort((-events.duration, events.start, events.thread, events.rank))
    threads = np.stack([events.rank[order], events.thread[order]])
    number = np.concatenate([[0], np.cumsum((threads[:, 1:] != threads[:, :-1]).any(axis=0))])
    times = np.unique(np.concatenate([events.start, end]))
    # Places among all times, counted on from thread to thread: one running maximum serves all threads.
    before = number * len(times)
    last_end = np.maximum.accumulate(before + np.searchsorted(times, end[order]))
    is_inside = np.zeros(len(events), np.bool_)
    is_inside[order[1:]] = last_end[:-1] > (before + np.searchsorted(times, events.start[order]))[1:]
    columns = {name: getattr(events, name) for name in COLUMNS}
    columns["depth"] = is_inside.astype(np.uint8)
    columns["carried"] = np.where(is_inside, events.carried, np.uint8(0))
    found = Events(columns, events.calls, events.files, events.sites)
    found.clock_step_s = events.clock_step_s
    return found
