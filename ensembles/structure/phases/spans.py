"""Spans of calls by phase, task and thread, in one compiled loop over a chunk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles import _compiled
from ensembles.model.events import Events
from ensembles.summaries.callsums import carried_bits
from ensembles.summaries.runtotals import direction_of_calls


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
    chunk : Events
        The calls.
    by_thread : bool
        Distinguish threads.
    with_bytes : bool
        Sum the bytes too, for which `chunk` has the columns ``call``, ``carried`` and ``moved``.

    Returns
    -------
    Spans
        In the order in which the keys occur.

    Examples
    --------
    >>> from ensembles.structure.phases.spans import sum_spans
    >>> run = en.open("ensio-ior")
    >>> spans = sum_spans(run.events.phase, run.events, with_bytes=True)
    >>> len(spans.phase), int(spans.calls.sum()), int(spans.bytes_written.sum())
    (96, 336, 167772160)
    """
    told: tuple[np.ndarray | None, ...] = (None,) * 5
    if with_bytes:
        told = (
            np.ascontiguousarray(chunk.call),
            np.ascontiguousarray(chunk.carried),
            np.ascontiguousarray(chunk.moved),
            carried_bits(chunk.calls),
            np.ascontiguousarray(direction_of_calls(chunk.calls), np.int32),
        )
    rows = _compiled.sum_spans(
        np.ascontiguousarray(phase, np.int64),
        np.ascontiguousarray(chunk.rank),
        np.ascontiguousarray(chunk.thread) if by_thread else None,
        np.ascontiguousarray(chunk.start),
        np.ascontiguousarray(chunk.duration),
        *told,
    )
    return Spans(*np.frombuffer(rows, np.int64).reshape(len(Spans._fields), -1))
