"""Writes with ends inside stripes against reads of the same size, by the same tasks, at the same targets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import LEAST_ABSORBED_BYTES_PER_NS, LEAST_CALLS, SMALL_CLASS, Case
from ensembles.model.distinct import distinct_rows

LEAST_PHASES = 3
SERVERS = 2.0
"""Ratio that servers may have without a cause: writes of parity groups take longer than reads."""

_LEAST_T = 3.0
_MOST_ABSORBED = 0.05
"""Share of the writes that a cache may have taken: a full cache slows down others of the same size."""

_LEAST_RAGGED = 0.8
_LEAST_READERS = 0.8
"""Share of the writing tasks that read too: with fewer, readers wait less for each other."""


class SlowWrites(NamedTuple):
    """Writes that take longer than reads.

    Attributes
    ----------
    call, size : int
        Function and size class of the writes.
    ratio, low, high : float
        Time for each byte, as a multiple of that of reads, and its 90 % interval over the phases.
    phases : int
        Phases with writes that were compared.
    """

    call: int
    size: int
    ratio: float
    low: float
    high: float
    phases: int


def against_reads(case: Case, ends: dict[str, np.ndarray]) -> SlowWrites | None:
    """Compare the most costly writes with ragged ends with reads that waited for targets, phase by phase.

    Parameters
    ----------
    case : Case
    ends : dict of str to ndarray
        Rows of `Evidence.ends` of the writes.

    Returns
    -------
    SlowWrites or None
        None: nothing compares, a cache took some of the writes, or writes are not slower.
    """
    ragged = (ends["ragged"] > 0) & (ends["size"] > SMALL_CLASS)  # small ones have a cost apart
    kinds = distinct_rows(ends["call"][ragged], ends["size"][ragged])[0].T.tolist()
    found = [each for call, size in kinds if (each := _compared(case, ends, call, size)) is not None]
    return max(found, key=lambda each: each.ratio, default=None)


def _compared(case: Case, ends: dict[str, np.ndarray], call: int, size: int) -> SlowWrites | None:
    rows = case.rows
    writes = (rows["call"] == call) & (rows["size"] == size)
    reads = (case.op == "read") & (case.layer == case.layer[writes][0]) & (rows["size"] == size)
    writers, readers = (np.unique(rows["rank"][each]) for each in (writes, reads))
    if len(np.intersect1d(writers, readers)) < _LEAST_READERS * len(writers):
        return None
    read_bytes = rows["bytes"][reads].sum() / rows["n"][reads].sum()
    written_bytes = rows["bytes"][writes].sum() / rows["n"][writes].sum()
    _, absorbed = _waiting_ns(case, np.array([call]), size, written_bytes)
    read_ns, _ = _waiting_ns(case, np.unique(rows["call"][reads]), size, read_bytes)
    mine = (ends["call"] == call) & (ends["size"] == size)
    where = np.unique(ends["phase"][mine], return_inverse=True)[1]
    n, time_ns, ragged = (
        np.bincount(where, values[mine])
        for values in (ends["n"], ends["time_ns"], ends["n"] * (ends["ragged"] > 0))
    )
    enough = n >= LEAST_CALLS
    if not read_ns or absorbed > _MOST_ABSORBED or enough.sum() < LEAST_PHASES:
        return None
    if ragged.sum() < _LEAST_RAGGED * n.sum():
        return None
    slower = np.log((time_ns / n)[enough] / written_bytes) - np.log(read_ns / read_bytes)
    mean, error = float(slower.mean()), float(slower.std(ddof=1)) / len(slower) ** 0.5
    if mean < np.log(SERVERS) or mean < _LEAST_T * error:
        return None
    low, ratio, high = np.exp([max(mean - 1.645 * error, 0.0), mean, mean + 1.645 * error]).tolist()
    return SlowWrites(call, size, ratio, low, high, len(slower))


def _waiting_ns(case: Case, calls: np.ndarray, size: int, mean_bytes: float) -> tuple[float, float]:
    """Return the mean duration of the calls that memory did not serve, and the share of the others.

    The duration is 0 where too few calls waited for targets.
    """
    table = case.evidence.durations.columns()
    mine = np.isin(table["call"], calls) & (table["size"] == size)
    count, each_ns = table["n"][mine], case.evidence.bin_ns(table["bin"][mine])
    waited = mean_bytes < LEAST_ABSORBED_BYTES_PER_NS * each_ns
    slow = int(count[waited].sum())
    mean_ns = float((count * each_ns)[waited].sum()) / slow if slow >= LEAST_CALLS else 0.0
    return mean_ns, 1 - slow / max(int(count.sum()), 1)
