"""Spans of calls by phase, task and thread, in one compiled loop over a chunk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.model.events import Events
from ensembles.summaries.keyed_sums import sum_by_keys
from ensembles.summaries.runtotals import DIRECTIONS, shared_directions


class Spans(NamedTuple):
    """A row for each phase, task and thread that occurs: arrays of int64, shape (n,).

    Attributes
    ----------
    phase, rank, thread : ndarray
        The key; thread 0 where threads are not distinguished.
    calls : ndarray
        Number of calls.
    start_ns, end_ns, time_ns : ndarray
        Start of the first call, end of the last, and the sum of their durations.
    last : ndarray
        The event that ends last; of those that end together the longest, and of these the last one.
    bytes_read, bytes_written : ndarray
        Bytes moved; those of inner calls count once. 0 if they were not asked for.
    """

    phase: np.ndarray
    rank: np.ndarray
    thread: np.ndarray
    calls: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    time_ns: np.ndarray
    last: np.ndarray
    bytes_read: np.ndarray
    bytes_written: np.ndarray


def sum_spans(phase: np.ndarray, chunk: Events, by_thread: bool = False, with_bytes: bool = False) -> Spans:
    """Sum the calls of a chunk by phase and task.

    Parameters
    ----------
    phase : ndarray of int64, shape (n,)
        Phase of each call, from 1; calls with other numbers do not count.
    with_bytes : bool
        Sum the bytes too, for which `chunk` has the columns ``call``, ``carried`` and ``moved``.

    Examples
    --------
    >>> from ensembles.structure.phases.spans import sum_spans
    >>> run = en.open("ensio-ior")
    >>> spans = sum_spans(run.events.phase, run.events, with_bytes=True)
    >>> len(spans.phase), int(spans.calls.sum()), int(spans.bytes_written.sum())
    (96, 336, 167772160)
    """
    row_of, end_ns = np.empty(len(chunk), np.int32), chunk.end
    found = sum_by_keys(
        {"phase": phase, "rank": chunk.rank} | ({"thread": chunk.thread} if by_thread else {}),
        {"time_ns": chunk.duration} | (_counted_bytes(chunk) if with_bytes else {}),
        {"start_ns": chunk.start},
        {"end_ns": end_ns},
        phase > 0,
        row_of,
    )
    none = np.zeros(len(found["n"]), np.int64)
    may_be_last = np.flatnonzero(row_of >= 0)
    may_be_last = may_be_last[end_ns[may_be_last] == found["end_ns"][row_of[may_be_last]]]
    may_be_last = may_be_last[np.argsort(chunk.duration[may_be_last], kind="stable")]
    last = none.copy()
    last[row_of[may_be_last]] = may_be_last  # of several, the last one stays
    found |= {"calls": found["n"], "last": last}
    return Spans(*(found.get(name, none) for name in Spans._fields))


def _counted_bytes(chunk: Events) -> dict[str, np.ndarray]:
    direction = shared_directions(chunk)
    names = ("bytes_read", "bytes_written")
    return {
        name: np.where(direction == DIRECTIONS.index(way), chunk.moved, 0)
        for name, way in zip(names, ("read", "write"), strict=True)
    }
