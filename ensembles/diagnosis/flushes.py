"""How long closes write what the cache holds: bytes since the last flush, and the rate of writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.target_load import busiest_share

LEAST_TARGET_BYTES_PER_NS = 0.05
"""Rate at which any storage target writes, and a slow disk."""

SMALL_FLUSH_BYTES = 64 << 10
"""Bytes of a close up to which writing them takes as long as writing nothing."""


class Flush(NamedTuple):
    """What closes have to write.

    Attributes
    ----------
    time_ns : ndarray of float64, shape (n,)
        Of the closes of each row.
    known : bool
        Whether there is a rate for it.
    measured : bool
        The rate is that of writes of the run; else `LEAST_TARGET_BYTES_PER_NS` of the busiest target.
    """

    time_ns: np.ndarray
    known: bool
    measured: bool


def flush_of_closes(case: Case, rows: np.ndarray) -> Flush:
    """Estimate how long each row's closes write what the cache holds.

    Parameters
    ----------
    case : Case
    rows : ndarray of bool, shape (n,)
        Rows of closes.
    """
    writes = (case.op == "write") & (case.layer == "posix") & (case.rows["bytes"] > 0)
    fast = np.where(writes, case.absorbed_share, 0.0)
    closes = case.by_cell(np.where(rows, case.rows["n"], 0))
    absorbed = _left_to_close(
        case.by_cell(np.where(writes, case.rows["bytes"] * fast, 0.0)), _synced(case, writes), closes > 0
    )
    slow_bytes = (np.where(writes, case.rows["bytes"] * (1 - fast), 0.0)).sum()
    slow_ns = np.where(writes & (fast < 1), case.rows["time_ns"], 0).sum()
    if absorbed.sum() == 0 or slow_bytes >= absorbed.sum():
        rate = max(slow_bytes, 1) / max(slow_ns, 1)
        flush = case.of_cells(np.divide(absorbed, rate, out=np.zeros_like(absorbed), where=absorbed > 0))
        return Flush(flush * case.rows["n"] / np.maximum(case.of_cells(closes), 1), True, True)
    busiest = busiest_share(case)
    if busiest is None:
        return Flush(np.zeros(len(case)), False, False)
    # All tasks of a window may wait until the busiest target has what is left of them.
    whole = absorbed.sum(axis=1) * busiest / LEAST_TARGET_BYTES_PER_NS
    flush = case.of_cells(np.where(closes > 0, whole[:, None], 0.0))
    return Flush(flush * case.rows["n"] / np.maximum(case.of_cells(closes), 1), True, False)


def _left_to_close(absorbed: np.ndarray, synced: np.ndarray, closed: np.ndarray) -> np.ndarray:
    """Add up what the cache took since the last close or sync of a task, at each close."""
    left, kept = np.zeros_like(absorbed), np.zeros(absorbed.shape[1])
    for window in range(len(absorbed)):
        kept = np.where(synced[window], 0.0, kept + absorbed[window])
        left[window] = np.where(closed[window], kept, 0.0)
        kept = np.where(closed[window], 0.0, kept)
    return left


def _synced(case: Case, writes: np.ndarray) -> np.ndarray:
    """Find the cells whose last sync comes after the last write."""
    last = []
    for rows in (writes, (case.op == "sync") & (case.layer == "posix")):
        end = np.zeros(case.present.shape)
        cell = case.cell_of_rows(rows)
        np.maximum.at(end, cell, case.rows["end_ns"][rows])
        last.append(end)
    synced: np.ndarray = last[1] > last[0]
    return synced


def later_flushes_ns(case: Case, heavy: np.ndarray) -> np.ndarray:
    """Compute what the syncs and closes of heavy tasks take beyond those of the median task of the others."""
    rows = (case.layer == "posix") & np.isin(case.op, ("sync", "close"))
    time_ns = case.by_cell(np.where(rows, case.rows["time_ns"], 0))
    others = np.nanmedian(np.where(heavy, np.nan, time_ns), axis=1, keepdims=True)
    beyond = np.where(heavy, np.maximum(time_ns - np.nan_to_num(others), 0), 0.0)
    share = np.divide(beyond, time_ns, out=np.zeros_like(beyond), where=time_ns > 0)
    late: np.ndarray = np.where(rows, case.rows["time_ns"] * case.of_cells(share), 0.0)
    return late


def without_the_flush_ns(case: Case, opens: np.ndarray) -> np.ndarray:
    """Estimate what calls take without what a close writes: many bytes stay, in whichever call.

    A close that writes nothing takes as long as an open. Of few bytes, the flush is a cost of each close.
    """
    posix, tasks = case.layer == "posix", len(case.ranks)
    closing = posix & (case.op == "close")
    written, closes = (
        np.bincount(case.task, np.where(rows, case.rows[name], 0), tasks)
        for rows, name in ((posix & (case.op == "write"), "bytes"), (closing, "n"))
    )
    usual_ns = case.rows["time_ns"][opens].sum() / max(case.rows["n"][opens].sum(), 1)
    flushes = closing & (written > SMALL_FLUSH_BYTES * closes)[case.task]
    found: np.ndarray = np.where(flushes, case.rows["n"] * usual_ns, case.rows["time_ns"])
    return found
