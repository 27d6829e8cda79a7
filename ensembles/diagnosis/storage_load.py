"""What storage and processors need for the bytes and calls of a run, which bounds what remedies save.

Bytes of storage targets by the layouts of files, how long closes write what the cache holds, and processors
that tasks share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.limits import LEAST_CALLS, LEAST_TARGET_BYTES_PER_NS, OUTLIER
from ensembles.model.distinct import distinct_rows, numbered_together
from ensembles.model.levels import ALIKE, NEARLY_ALL, SMALL_BYTES
from ensembles.summaries.keyed_sums import groups_of_rows

if TYPE_CHECKING:
    from ensembles.diagnosis.file_uses import FileUses
    from ensembles.summaries.keyed_sums import KeyedSums


TARGET_BYTES_PER_NS = (0.2, 1.0)
"""Rates of a storage target, for the least and the likely gain: its bytes take time whatever the requests."""

MOST_STRIPES = 512
"""Files with more stripes are taken to be on all targets."""


class TargetLoad(NamedTuple):
    """Parts of files on targets: a row for each use of a file by a task, and each target of the file."""

    # rank, target: int64, shape (n,)
    rank: np.ndarray
    target: np.ndarray
    # float64, shape (n,): Bytes of the task on the target, if it uses all stripes of the file alike
    bytes: np.ndarray

    @property
    def of_targets(self) -> np.ndarray:
        """Bytes of each target: shape (targets,)."""
        return np.bincount(self.target, self.bytes)


def targets_of(stripes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of layouts (rows of `Evidence.stripes`), one for each target, and the targets."""
    _, count, first, listed = stripes.T
    row = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, (first[row] + number) % np.maximum(listed[row], 1)


def load_of_targets(case: Case) -> TargetLoad:
    """Divide the bytes of files with a known layout among their targets."""
    uses, stripes = case.evidence.uses.columns(), case.evidence.stripes
    stripes = stripes[np.minimum(uses["file"], len(stripes) - 1)]
    _, count, _, listed = stripes.T
    known = np.flatnonzero((listed > 0) & (count > 0) & (count <= MOST_STRIPES))
    row, target = targets_of(stripes[known])
    at = known[row]
    return TargetLoad(uses["rank"][at], target, uses["bytes"][at] / count[at])


def busiest_share(case: Case) -> float | None:
    """Return the share of all bytes that is on the target with most of them; None: it is not known."""
    load, moved = load_of_targets(case), float(case.evidence.uses.columns()["bytes"].sum())
    known = float(load.bytes.sum())
    return float(load.of_targets.max()) / known if known > NEARLY_ALL * moved > 0 else None


def within_targets(case: Case, saved_ns: np.ndarray, rate: float) -> np.ndarray:
    """Limit savings: no phase is shorter than the time in which its busiest target moves its bytes."""
    busiest = busiest_share(case)
    if busiest is None:
        return saved_ns
    data = case.on_files & np.isin(case.op, ("read", "write"))
    needed = case.by_cell(np.where(data, case.rows["bytes"], 0)).sum(axis=1) * busiest / rate
    room = np.maximum(case.length_s * 1e9 - needed, 0)
    most = case.by_cell(saved_ns).max(axis=1)
    part = np.minimum(np.divide(room, most, out=np.ones_like(most), where=most > 0), 1.0)
    limited: np.ndarray = saved_ns * case.of_cells(np.repeat(part[:, None], len(case.ranks), axis=1))
    return limited


def on_crowded_nodes(case: Case) -> np.ndarray:
    """Return the number of the node of each task that shares processors; -1: others. Shape (tasks,)."""
    names = sorted(case.run.info.oversubscribed)
    hosts = {process.rank: process.host for process in case.run.info.processes}
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([numbers.get(hosts.get(int(rank), ""), -1) for rank in case.ranks], np.int64)


def with_shared_processors(case: Case, saved_ns: np.ndarray) -> np.ndarray:
    """Let the tasks of a node save its processor time: what they save in all, over its processors.

    A saving is time of a processor. Tasks that take turns on fewer processors wait for each other's calls, in
    calls and between them. No row saves more than its time.
    """
    node = on_crowded_nodes(case)
    if not (node >= 0).any():
        return saved_ns
    saved = case.by_cell(saved_ns)
    factor = np.ones_like(saved)
    processors = case.run.info.processors
    for number, name in enumerate(sorted(case.run.info.oversubscribed)):
        mine = node == number
        shared = saved[:, mine].sum(axis=1, keepdims=True) / processors[name]
        own = saved[:, mine]
        factor[:, mine] = np.maximum(np.divide(shared, own, out=np.ones_like(own), where=own > 0), 1.0)
    found: np.ndarray = np.minimum(saved_ns * case.of_cells(factor), case.rows["time_ns"])
    return found


def usual_where_shared_ns(
    case: Case, rows: np.ndarray, usual_ns: np.ndarray, of: KeyedSums | None = None
) -> np.ndarray:
    """Take means in place of usual durations where tasks lose their processor in calls, again and again.

    Which call loses it is random, so that the mean is that of all tasks on crowded nodes, by function and
    size.
    """
    shared = rows & (on_crowded_nodes(case) >= 0)[case.task]
    if not shared.any():
        return usual_ns
    duration_ns, weight = case.durations_of(shared)
    if weight[duration_ns > OUTLIER * case.median_ns(shared)].sum() < LEAST_CALLS:
        return usual_ns
    if case.effective_count(shared) < LEAST_CALLS:
        return usual_ns
    found: np.ndarray = np.where(shared, case.usual_ns(of, np.inf), usual_ns)
    return found


_FLUSHING = ("sync", "close")


def bytes_to_flush(case: Case, uses: FileUses) -> np.ndarray:
    """Compute how many bytes each sync or close of a row had to flush.

    They are what the task wrote to the file since the phase of its sync or close of this file before. Layers
    see the same bytes, so that the one with most of them counts.
    """
    table = uses.table.columns()
    op, layer = case.ops[table["call"]], case.layers[table["call"]]
    flushes = np.isin(op, _FLUSHING)
    used = np.flatnonzero(flushes | (op == "write"))
    if not flushes.any():
        return np.zeros(len(case))
    (file, rank, _), cell = distinct_rows(*(table[name][used] for name in ("file", "rank", "phase")))
    written = np.zeros(len(file))
    for each in np.unique(layer[used]):
        mine = (op[used] == "write") & (layer[used] == each)
        written = np.maximum(written, np.bincount(cell[mine], table["bytes"][used[mine]], len(file)))
    # Cells are in the order of file, task and phase: what is written adds up to the next flush.
    flushed = np.bincount(cell, flushes[used], len(file)) > 0
    before = np.cumsum(written) - written
    starts = np.ones(len(file), bool)
    starts[1:] = (np.diff(file) != 0) | (np.diff(rank) != 0) | flushed[:-1]
    first = np.flatnonzero(starts)
    since = before + written - before[first[np.cumsum(starts) - 1]]
    rows = flushes[used]
    flushed_rows = {name: column[used[rows]] for name, column in table.items()}
    theirs, mine, size = numbered_together(("phase", "rank", "call"), flushed_rows, case.rows)
    whole, count = (np.bincount(theirs, each, size) for each in (since[cell[rows]], flushed_rows["n"]))
    found: np.ndarray = (whole / np.maximum(count, 1))[mine]
    return found


def flushes_alike(case: Case, uses: FileUses) -> np.ndarray:
    """Find the rows that compare with those of other tasks: syncs and closes only after the same bytes."""
    if flushes_alike not in case.shared:
        alike = np.ones(len(case), bool)
        rows = np.flatnonzero(np.isin(case.op, _FLUSHING))
        if len(rows):
            moved = np.maximum(bytes_to_flush(case, uses)[rows], SMALL_BYTES)
            names = ("phase", "call", "size", "depth")
            group = groups_of_rows([case.rows[name][rows].astype(np.int64) for name in names])[0]
            order = np.lexsort((moved, group))
            # The upper of two middle values: between them, there may be no call.
            middle = np.searchsorted(group[order], np.arange(int(group.max()) + 1)) + np.bincount(group) // 2
            usual = moved[order][middle][group]
            alike[rows] = np.maximum(moved, usual) <= ALIKE * np.minimum(moved, usual)
        case.shared[flushes_alike] = alike
    found: np.ndarray = case.shared[flushes_alike]
    return found


class Flush(NamedTuple):
    """What closes have to write."""

    time_ns: np.ndarray  # float64, shape (n,): Of the closes of each row
    known: bool  # Whether there is a rate for it
    # The rate is that of writes of the run; else `LEAST_TARGET_BYTES_PER_NS` of the busiest target
    measured: bool


def flush_of_closes(case: Case, rows: np.ndarray) -> Flush:
    """Estimate how long each row's closes write what the cache holds."""
    writes = (case.op == "write") & case.on_files & (case.rows["bytes"] > 0)
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
    for rows in (writes, (case.op == "sync") & case.on_files):
        end = np.zeros(case.present.shape)
        cell = case.cell_of_rows(rows)
        np.maximum.at(end, cell, case.rows["end_ns"][rows])
        last.append(end)
    synced: np.ndarray = last[1] > last[0]
    return synced


def later_flushes_ns(case: Case, heavy: np.ndarray) -> np.ndarray:
    """Compute what the syncs and closes of heavy tasks take beyond those of the median task of the others."""
    rows = case.on_files & np.isin(case.op, ("sync", "close"))
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
    tasks = len(case.ranks)
    closing = case.on_files & (case.op == "close")
    written, closes = (
        np.bincount(case.task, np.where(rows, case.rows[name], 0), tasks)
        for rows, name in ((case.on_files & (case.op == "write"), "bytes"), (closing, "n"))
    )
    usual_ns = case.rows["time_ns"][opens].sum() / max(case.rows["n"][opens].sum(), 1)
    flushes = closing & (written > SMALL_BYTES * closes)[case.task]
    found: np.ndarray = np.where(flushes, case.rows["n"] * usual_ns, case.rows["time_ns"])
    return found
