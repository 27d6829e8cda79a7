"""A run as rules see it: its evidence, and the model of time by which a remedy gains.

In a phase, every task goes its own way until all tasks meet. The phase lasts until the last of them arrives.
A remedy takes time off calls; the gain is by how much the last arrival of each phase is earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from errno import EINTR
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.evidence import Evidence, on_files
from ensembles.diagnosis.limits import (
    FAR,
    LEAST_CALLS,
    LEAST_TARGET_BYTES_PER_NS,
    LEAST_UNITS,
    OUTLIER,
    SMALL_CLASS,
)
from ensembles.diagnosis.with_meetings import Cells, WithMeetings, WithoutMeetings
from ensembles.model.distinct import numbered_together
from ensembles.model.levels import ALIKE, RESAMPLES, SEVERAL
from ensembles.model.units import seconds_text
from ensembles.structure.libraries import CLOCK_NS, LIBRARIES, between_inner_ns, recorder_cost_s
from ensembles.structure.phases.critical_path import CriticalPath
from ensembles.structure.phases.result import MEETINGS, TOGETHER, tasks_meet
from ensembles.summaries.keyed_sums import groups_of_rows

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.structure.phases.critical_path import CriticalIo
    from ensembles.summaries.failed_calls import FailedCalls
    from ensembles.summaries.keyed_sums import KeyedSums

LEAST_ABSORBED_BYTES_PER_NS = 0.1
"""At this rate or faster, a cache that many tasks share may have absorbed a write."""

_COLLECTIVE = ("MPI_File_close", "MPI_File_sync")


class Case:
    """The evidence of a run, with its critical path.

    Attributes
    ----------
    rows : dict of str to ndarray, shape (n,)
        Table of calls (`Evidence.calls`).
    ops, layers, names : ndarray of str, shape (functions,)
        Of the functions of the run, by number.
    op, layer, name : ndarray of str, shape (n,)
        Of the function of each row.
    on_files, calls_on_files : ndarray of bool, shape (n,) and (functions,)
        Rows, and functions, of the lowest layer that was recorded (`ensembles.diagnosis.evidence.on_files`).
    window : ndarray of int64, shape (n,)
        Phase at whose end tasks wait for each other; 0: the whole run is one.
    span_s : float
        From the first call to the last: no remedy gains more.
    run_s : float
        Length of the run (`Run.length_s`), of which severities are shares.
    critical : CriticalPath
        How much of the critical path is I/O, as far as is known.
    failed : FailedCalls or None
        Failed calls of the run, filled; None: not known.
    recorder_ns : float
        Time of the recorder for each call, which is not in ``time_ns`` of rows; 0: next to nothing.
    recorded_ns : ndarray, shape (n,)
        Time of each row with the part of the recorder in it.
    shared : dict
        What rules computed and others need too.
    cells : Cells
        Sums by window and task.
    model : WithMeetings or WithoutMeetings
        How time saved in calls makes the run shorter: who waits for whom is known, or not (`tasks_meet`).
    """

    def __init__(self, run: Run, evidence: Evidence) -> None:
        self.run, self.evidence = run, evidence
        self.critical = CriticalPath(run.length_s, 0.0, 0.0, is_of_run=False)
        self.failed: FailedCalls | None = None
        self.shared: dict[Any, Any] = {}
        self.rows = dict(evidence.calls.columns())
        calls = np.array([(c.op, c.layer, c.name) for c in run.calls] or [("", "", "")])
        self.ops, self.layers, self.names = calls.T
        number = self.rows["call"].astype(np.int64)
        self.op, self.layer, self.name = (each[number] for each in (self.ops, self.layers, self.names))
        self.calls_on_files = on_files(run.calls, np.unique(number))
        self.on_files = self.calls_on_files[number]
        cost_s = sum(recorder_cost_s(run.info, int(self.rows["n"].sum()), run.length_s)) / 2
        # It takes no more than the readings of the clock in calls, and what passed outside of the innermost.
        around = np.isin(self.layer, list(LIBRARIES))
        rest_ns = 1e9 * run.length_s * run.info.threads - float(self.rows["time_ns"][~around].sum())
        most_ns = CLOCK_NS + max(rest_ns, 0.0) / max(int(self.rows["n"].sum()), 1)
        self.recorder_ns = min(1e9 * cost_s, most_ns)
        self.recorded_ns = self.rows["time_ns"]
        if cost_s:
            self.rows["time_ns"] = self._without_recorder_ns()
        phases = evidence.phases
        waits = phases is not None and phases.rule in TOGETHER
        self.window = self.rows["phase"] if waits else np.zeros(len(self), np.int64)
        windows, self._window = np.unique(self.window, return_inverse=True)
        ranks, self.task = np.unique(self.rows["rank"], return_inverse=True)
        self.windows, self.ranks = windows, ranks
        first = int(self.rows["start_ns"].min()) if len(self) else 0
        self.span_s = (int(self.rows["end_ns"].max()) - first) * 1e-9 if len(self) else 0.0
        self.run_s = run.length_s
        self.cells = Cells(self.rows, self._window, self.task)
        self.present = self.cells.present
        meet = tasks_meet(run.info, phases)
        self.model: WithMeetings | WithoutMeetings
        if evidence.time_model is not None:
            self.model = evidence.time_model(self.cells, self.rows, ranks, meet)
        elif meet:
            others = run.tasks - len(ranks)
            ends = phases is not None and phases.rule in MEETINGS
            together = (windows > 0) | (len(windows) == 1)
            self.model = WithMeetings(self.cells, self.rows, ranks, together, others if ends else None)
        else:
            self.model = WithoutMeetings(self.rows, self.task, run.info.threads_of_tasks[ranks])

    def __len__(self) -> int:
        return len(self.rows["n"])

    def _without_recorder_ns(self) -> np.ndarray:
        """Take the recorder's time off rows, and off calls of libraries that between the calls inside."""
        count, rank = self.rows["n"], self.rows["rank"]
        left_ns = np.maximum(self.rows["time_ns"] - CLOCK_NS * count, count)
        around = np.isin(self.layer, list(LIBRARIES)) & (self.rows["depth"] == 0)
        between_ns = between_inner_ns(self.recorder_ns) * np.bincount(rank, count * (self.rows["depth"] > 0))
        part = np.minimum(between_ns / np.maximum(np.bincount(rank, left_ns * around), 1.0), 1.0)
        found: np.ndarray = np.maximum(left_ns - (left_ns * around * part[rank]).astype(np.int64), count)
        return found

    @cached_property
    def interrupted_share(self) -> np.ndarray:
        """Share of the calls of each row's function that a signal interrupted (EINTR): shape (n,)."""
        calls = self.run.calls
        number = {call: at for at, call in enumerate(calls)}
        count = np.zeros(max(len(calls), 1))
        for kind in self.failed.kinds() if self.failed is not None else ():
            if kind.error == EINTR:
                count[number[kind.call]] += kind.calls
        whole = np.bincount(self.rows["call"], self.rows["n"], len(count))
        share: np.ndarray = np.minimum(count / np.maximum(whole, 1), 1.0)[self.rows["call"]]
        return share

    @cached_property
    def phases_are_steps(self) -> bool:
        """Whether several phases move data, as those of a program that works in steps."""
        data = np.isin(self.op, ("read", "write")) & (self.rows["bytes"] > 0)
        return len(np.unique(self.window[data])) >= SEVERAL

    def paths(self, cost: np.ndarray) -> tuple[str, ...]:
        """Return the paths of the files with some cost, by number, the most costly first."""
        order = np.argsort(-cost, kind="stable")[: np.count_nonzero(cost)]
        return tuple(self.run.files[number] for number in order.tolist())

    def leave_out(self, io: CriticalIo) -> None:
        """Take waiting for other tasks inside windows off the times at which tasks arrive at their ends."""
        self.model.bound(io.in_io_s)
        if isinstance(self.model, WithMeetings) and self.windows.any():
            rows, waited = io.tasks(), np.zeros(self.present.shape)
            at = np.searchsorted(self.windows, rows["phase"]), np.searchsorted(self.ranks, rows["rank"])
            waited[at] = rows["waited_ns"]
            self.model.leave_out(waited)

    def by_cell(self, values: np.ndarray) -> np.ndarray:
        """Add up values of the rows by window and task: shape (windows, tasks)."""
        return self.cells.sums(values)

    def cell_of_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of window and task of chosen rows."""
        return self._window[rows], self.task[rows]

    def of_cells(self, values: np.ndarray) -> np.ndarray:
        """Return the value of the cell of each row."""
        return values[self._window, self.task]

    def gain_s(self, saved_ns: np.ndarray) -> float:
        """Compute by how much the run would be shorter, by the best estimate of the model."""
        return self.model.likely_s(saved_ns)

    @property
    def length_s(self) -> np.ndarray:
        """From the first call of each window to its last arrival: shape (windows,)."""
        return self.cells.length_s

    def most_s(self, time_ns: np.ndarray) -> float:
        """Bound what calls can cost that take this time."""
        return self.model.most_s(time_ns)

    def spread_ns(self, saved_ns: np.ndarray, of_tasks: Callable[..., np.ndarray] = np.mean) -> np.ndarray:
        """Let all tasks of a window save what the tasks save on average: they wait at the same servers."""
        saved = self.by_cell(saved_ns)
        together = np.where(self.present, saved, 0.0 if of_tasks is np.max else np.nan)
        usual = np.max(together, axis=1) if of_tasks is np.max else np.nanmean(together, axis=1)
        missing = np.where(self.present, np.maximum(usual[:, None] - saved, 0.0), 0.0)
        left = np.maximum(self.rows["time_ns"] - saved_ns, 0.0)
        whole = np.maximum(self.by_cell(left), 1.0)
        spread: np.ndarray = saved_ns + left * np.minimum(self.of_cells(missing / whole), 1.0)
        return spread

    def quartile_ns(self, share: float = 0.25, of: KeyedSums | None = None) -> np.ndarray:
        """Look up a lower quantile of the durations of each row's function and size class, ns."""
        table, kind, of_rows, kinds = self._by_kind(of)
        found = np.zeros(kinds)
        for number in np.unique(kind).tolist():  # rows of a kind follow each other
            first, last = np.searchsorted(kind, [number, number + 1])
            counts = np.cumsum(table["n"][first:last])
            at = int(np.searchsorted(counts, share * counts[-1]))
            found[number] = self.evidence.bin_ns(table["bin"][first + at])
        of_each: np.ndarray = found[of_rows]
        return of_each

    def _by_kind(
        self, of: KeyedSums | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, int]:
        """Return the durations (or a part: `of`), and the numbers of function and size class of both rows."""
        table = (of or self.evidence.durations).columns()
        return table, *numbered_together(("call", "size"), table, self.rows)

    def durations_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look up the durations of the calls of some rows together: rising ones, and numbers of calls.

        Calls of each function and size class count as often as the rows have them.
        """
        table, place, of_rows, kinds = self._by_kind()
        wanted = np.bincount(of_rows, np.where(rows, self.rows["n"], 0), kinds)
        every = np.maximum(np.bincount(place, table["n"], kinds), 1)
        order = np.argsort(table["bin"], kind="stable")
        weight = (table["n"] * (wanted / every)[place])[order]
        return self.evidence.bin_ns(table["bin"][order]), weight

    def median_ns(self, rows: np.ndarray) -> float:
        """Look up the median duration of the calls of some rows together, in ns."""
        duration_ns, weight = self.durations_of(rows)
        reached = np.cumsum(weight)
        return float(duration_ns[int(np.searchsorted(reached, 0.5 * reached[-1]))])

    def effective_count(self, rows: np.ndarray) -> float:
        """Compute how many calls of equal duration make up the time of these rows; 1: one call does."""
        duration_ns, weight = self.durations_of(rows)
        return float((weight @ duration_ns) ** 2 / (weight @ duration_ns**2))

    def usual_ns(self, of: KeyedSums | None = None, outlier: float = OUTLIER) -> np.ndarray:
        """Compute the mean duration of each row's function and size class without outliers, in ns.

        Calls of more than `outlier` times the median wait for something else than the call: a processor, or
        the disk.
        """
        table, where, at, kinds = self._by_kind(of)
        median = np.zeros(kinds)
        median[at] = self.quartile_ns(0.5, of)
        each_ns = self.evidence.bin_ns(table["bin"])
        usual = table["n"] * (each_ns <= outlier * median[where])
        mean = np.bincount(where, usual * each_ns, kinds) / np.maximum(np.bincount(where, usual, kinds), 1)
        found: np.ndarray = mean[at]
        return found

    def habitual_ns(self, rows: np.ndarray, bearing: np.ndarray | None = None) -> np.ndarray:
        """Compute the time of each row's calls that bear a cost, rare long ones as others.

        Those of more than `OUTLIER` times the median are rare if fewer than `LEAST_CALLS` a task make up the
        time: they wait for a processor, or for the disk. Of calls with bytes, they are also if fewer than
        one in `OUTLIER` is so long: the bytes remain. Of other calls, nothing does.
        """
        time_ns = self.rows["time_ns"].astype(np.float64)
        bearing = self.rows["n"] if bearing is None else bearing
        for call in np.unique(self.rows["call"][rows]):
            mine = rows & (self.rows["call"] == call)
            each_ns, count = self.durations_of(mine)
            whole_ns = max(float(count @ each_ns), 1.0)
            slowest = np.minimum(np.cumsum(count[::-1]), float(bearing[mine].sum()))[::-1]
            count = slowest - np.append(slowest[1:], 0.0)
            median_ns = each_ns[np.searchsorted(-slowest, -0.5 * slowest[0], side="right") - 1]
            is_long = each_ns > OUTLIER * median_ns
            may_remain = self.rows["bytes"][mine].any() and OUTLIER * count[is_long].sum() < slowest[0]
            if may_remain or self._few_make_up(mine):
                each_ns = np.where(is_long, np.average(each_ns, weights=count * ~is_long), each_ns)
            time_ns[mine] *= float(count @ each_ns) / whole_ns
        return time_ns

    def beyond_bytes_ns(self, rows: np.ndarray) -> np.ndarray:
        """Take what a slow disk needs for the bytes of all tasks off rows; 0: few calls make the time up."""
        disk_ns = self.rows["bytes"] / LEAST_TARGET_BYTES_PER_NS * len(np.unique(self.task[rows]))
        left_ns = self.rows["time_ns"] - disk_ns
        for call in np.unique(self.rows["call"][rows]):
            mine = rows & (self.rows["call"] == call)
            left_ns[mine] *= not self._few_make_up(mine)
        found: np.ndarray = np.maximum(left_ns, 0.0)
        return found

    def _few_make_up(self, rows: np.ndarray) -> bool:
        """Check whether fewer than `LEAST_CALLS` calls a task make up the time of rows."""
        return bool(self.effective_count(rows) < LEAST_CALLS * len(np.unique(self.task[rows])))

    @cached_property
    def absorbed_share(self) -> np.ndarray:
        """Which share of the calls of each row's function and size class memory may have absorbed."""
        table, where, at, kinds = self._by_kind()
        calls = np.maximum(np.bincount(at, self.rows["n"], kinds), 1)
        mean_bytes = np.bincount(at, self.rows["bytes"], kinds) / calls
        fast = mean_bytes[where] >= LEAST_ABSORBED_BYTES_PER_NS * self.evidence.bin_ns(table["bin"])
        fast |= (
            table["size"] <= SMALL_CLASS
        )  # their time is a cost of each call, which does not depend on the bytes
        share = np.bincount(where, table["n"] * fast, kinds) / np.bincount(where, table["n"], kinds)
        found: np.ndarray = share[at]
        return found

    def through_collectives(self, saved_ns: np.ndarray) -> np.ndarray:
        """Let all tasks of a collective call save what the aggregator saves for which they wait."""
        collective = np.char.endswith(self.name, "_all") | np.isin(self.name, _COLLECTIVE)
        collective &= self.layer == "mpiio"
        inner = (self.layer == "posix") & (self.rows["depth"] > 0)
        saved = self.by_cell(np.where(inner, saved_ns, 0))
        own = self.by_cell(np.where(collective, np.maximum(self.rows["time_ns"] - saved_ns, 0), 0))
        if not saved.any() or not own.any():
            return saved_ns
        storage = self.by_cell(np.where(inner, self.rows["time_ns"], 0))
        gain = storage.max(axis=1) - (storage - saved).max(axis=1)
        part = np.divide(np.clip(gain[:, None] - saved, 0, own), own, out=np.zeros_like(own), where=own > 0)
        left = np.where(collective, np.maximum(self.rows["time_ns"] - saved_ns, 0), 0)
        found: np.ndarray = saved_ns + left * self.of_cells(part)
        return found

    def kept_after_flush(self, saved_ns: np.ndarray) -> np.ndarray:
        """Take off what a close or sync would wait for instead: bytes leave the cache during other calls."""
        writes = self.on_files & (self.op == "write") & (self.rows["bytes"] > 0) & (self.absorbed_share > 0)
        flushes = (
            self.on_files
            & np.isin(self.op, ("close", "sync"))
            & np.isin(self.rows["rank"], self.rows["rank"][writes])
        )
        tasks = len(self.ranks)
        flush = np.bincount(self.task, np.where(flushes & (saved_ns <= 0), self.rows["time_ns"], 0), tasks)
        saved = np.bincount(self.task, saved_ns, tasks)
        kept: np.ndarray = saved_ns * np.maximum(1 - flush / np.maximum(saved, 1), 0)[self.task]
        return kept

    def residuals(self, chosen: np.ndarray, by_time: bool = False) -> np.ndarray:
        """Compute by how much the rows of each task are slower than those of others, as logarithms.

        A row is compared with the median over the tasks of the same phase, function and size class; what
        larger requests, or more bytes of the task in the phase, would explain is taken off. Shape (windows,
        tasks), 0 where nothing compares.
        """
        rows = {name: column[chosen] for name, column in self.rows.items()}
        if by_time:
            rows["log_ns"] = rows["n"] * np.log(np.maximum(rows["time_ns"], 1) / rows["n"])
        keys = [rows[name] for name in ("phase", "call", "size", "depth")]
        at = (self._window[chosen], self.task[chosen])
        return _residuals(rows, keys, at, self.present.shape, self._heavier[at])[0]

    def residuals_of_quarters(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the residuals of the quarters of phases, and the time of the calls that are compared.

        Both have the shape (quarters of phases, tasks). A run with few long phases shows with its quarters
        whether a task is slow all the time.
        """
        table = self.evidence.quarters.columns()
        names = ("phase", "rank", "call", "size", "depth")
        wanted = {name: self.rows[name][chosen] for name in names}
        wanted_rows, of_quarters, _ = numbered_together(names, wanted, table)
        mine = np.isin(of_quarters, wanted_rows)
        rows = {name: column[mine] for name, column in table.items()}
        keys = [rows[name] for name in ("phase", "call", "size", "depth", "quarter")]
        window = np.unique(4 * rows["phase"] + rows["quarter"], return_inverse=True)[1].reshape(-1)
        task = np.searchsorted(self.ranks, rows["rank"])
        shape = (int(window.max(initial=-1)) + 1, len(self.ranks))
        waits = len(self.windows) > 1 or bool(self.windows.any())
        of_phase = np.searchsorted(self.windows, rows["phase"] * waits)
        return _residuals(rows, keys, (window, task), shape, self._heavier[of_phase, task])

    @cached_property
    def _heavier(self) -> np.ndarray:
        """Logarithm of how many times the bytes of the median task each task moves: shape (windows, tasks).

        Below `ALIKE`, it is 0. Files that are longer take longer to truncate, and a task that is busy
        for longer loses its processor more often: all of its calls may be longer.
        """
        data = np.isin(self.op, ("read", "write")) & (self.rows["depth"] == 0)
        moved = self.by_cell(np.where(data, self.rows["bytes"], 0)).astype(np.float64)
        moved[moved == 0] = np.nan
        usual = np.array([np.nanmedian(row) if np.isfinite(row).any() else 1.0 for row in moved])
        ratio = np.nan_to_num(moved / usual[:, None], nan=1.0)
        heavier: np.ndarray = np.where(ratio >= ALIKE, np.log(ratio), 0.0)
        return heavier

    def nodes_of_tasks(self) -> np.ndarray | None:
        """Return the number of the node of each task; None: not known, or there is one node only."""
        hosts = {process.rank: process.host for process in self.run.info.processes}
        names = [hosts.get(int(rank), "") for rank in self.ranks]
        if "" in names or len(set(names)) < 2:
            return None
        return np.unique(names, return_inverse=True)[1]


def how_long(case: Case, rows: np.ndarray) -> str:
    """Say how long a call of rows takes; where a few long ones make the mean, also what it usually takes."""
    count = int(case.rows["n"][rows].sum())
    each_s = float(case.recorded_ns[rows].sum()) / max(count, 1) * 1e-9
    usual_s = case.median_ns(rows) * 1e-9 if count else each_s
    if each_s < FAR * usual_s or not usual_s:
        return f"take {seconds_text(each_s)} each"
    return f"take {seconds_text(each_s)} each on average, usually {seconds_text(usual_s)}"


def _residuals(
    rows: Mapping[str, np.ndarray],
    keys: Sequence[np.ndarray],
    at: tuple[np.ndarray, np.ndarray],
    shape: tuple[int, int],
    heavier: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute how much slower rows are than others of equal keys; means by place, and the time in them."""
    total, weight = np.zeros(shape), np.zeros(shape)
    if not len(rows["n"]):
        return total, weight
    group = groups_of_rows(list(keys))[0]
    values = rows["log_ns"] / rows["n"]
    sizes = np.log(np.maximum(rows["bytes"], 1) / rows["n"])
    values = values - group_medians(values, group)
    larger = np.maximum(sizes - group_medians(sizes, group), 0)
    values = values - larger
    values = values - np.minimum(heavier, np.maximum(values, 0))
    values = np.where(np.bincount(group)[group] >= LEAST_UNITS, values, 0.0)
    np.add.at(total, at, values * rows["time_ns"])
    np.add.at(weight, at, rows["time_ns"])
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0), weight


def group_medians(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the median of the group of each value."""
    order = np.lexsort((values, group))
    begin = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 1))
    count = np.bincount(group)
    sorted_values = values[order]
    median = (sorted_values[begin + (count - 1) // 2] + sorted_values[begin + count // 2]) / 2
    found: np.ndarray = median[group]
    return found


def p_of_chance(seen: float, drawn: Callable[[np.random.Generator], float], draws: int = RESAMPLES) -> float:
    """Compute the p-value of a value by those of random permutations, which `drawn` makes."""
    rng = np.random.default_rng(0)
    return (1 + sum(drawn(rng) >= seen for _ in range(draws))) / (1 + draws)


def p_of_largest(values: np.ndarray, present: np.ndarray, draws: int = RESAMPLES) -> float:
    """Compute the p-value of the largest mean of a column, by permutation within rows."""
    filled = np.where(present, values, 0.0)
    seen = float(filled.mean(axis=0).max()) - 1e-12
    return p_of_chance(seen, lambda rng: float(rng.permuted(filled, axis=1).mean(axis=0).max()), draws)
