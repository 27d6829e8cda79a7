"""What the recorded summary says of a run, as the rules need it: calls by function, size class and task.

The recorder keeps it in every mode. It has neither files nor phases nor the order of calls, and sizes are not
kept by task. So every gain has bounds: tasks are taken to be slow at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.division import divide
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, Where, refuse_if_it_matters
from ensembles.diagnosis.fixed_cost import OUTLIER
from ensembles.diagnosis.principles import BYTES, CALLS, LATE_TASK, MESSAGES, RECORDER, SLOW_TASK
from ensembles.diagnosis.remedy import finding_of_bounds
from ensembles.diagnosis.time_of_run import messages_s
from ensembles.model.events import is_io_of_calls
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.structure.library_time import CLOCK_NS, recorder_cost_s
from ensembles.summaries.bins import bin_low_ns

if TYPE_CHECKING:
    from ensembles.run.run import Run


def check_straggler(run: Run) -> Finding | None:
    """Refuse a run in which one task is in I/O for notably longer than the median task."""
    case = SummedCase(run)
    if len(case.ranks) < 2:
        raise NotApplicable("one task makes the I/O calls, and has no others to be compared with")
    refuse(
        case,
        float(case.busy_s.max() - np.median(case.busy_s)),
        "sums by task have no phases in which a slow task could be compared with the others",
    )
    return None


def check_coordination(run: Run) -> Finding | None:
    """Refuse a run whose collective calls take notably longer than the storage inside them."""
    case = SummedCase(run)
    collective = np.char.endswith(case.name, "_all") & (case.layer == "mpiio")
    if not collective.any():
        return None
    own = case.divided(np.where(collective, case.rows["own_ns"], 0.0))
    refuse(
        case,
        float(own[own > 0].min(initial=np.inf)) if (own > 0).any() else 0.0,
        "sums do not divide the time of collective calls into waiting for the last task and messages",
    )
    return None


def refuse(case: SummedCase, at_most_s: float, why: str) -> None:
    """Refuse a run of which a cause could take a notable part."""
    refuse_if_it_matters(at_most_s, case.run_s, f", and {why}: {case.run.info.how_to_keep_calls}", False)


class SummedCase:
    """A run that keeps sums instead of calls.

    Attributes
    ----------
    op, layer, name : ndarray of str, shape (n,)
        Of the function of each row.
    rows : dict of str to ndarray, shape (n,)
        By ``call`` and ``size`` (class): ``n``, ``bytes``, ``own_ns`` (without recorded inner calls).
    ranks : ndarray of int64, shape (tasks,)
        Tasks that made calls of I/O.
    span_s : float
        From the first call of I/O to the end of the last.
    run_s : float
        Length of the run (`Run.length_s`).
    """

    def __init__(self, run: Run) -> None:
        self.run, summary, table = run, run.summary, run.reading.ranks
        cells = summary.cells
        io = is_io_of_calls(summary.calls)[cells["call"]] if len(summary) else np.zeros(0, bool)
        key = cells["call"] * 256 + cells["size_class"]
        self._keys, group = np.unique(key[io], return_inverse=True)
        self._group = np.full(len(io), -1)
        self._group[io] = group
        size = len(self._keys)
        own = cells["time_ns"] - cells["inner_ns"]
        self.rows = {
            "call": self._keys // 256,
            "size": self._keys % 256,
            "n": np.bincount(group, cells["count"][io], size).astype(np.int64),
            "bytes": np.bincount(group, cells["moved"][io], size).astype(np.int64),
            "own_ns": np.bincount(group, own[io], size),
        }
        functions = [(call.op, call.layer, call.name) for call in summary.calls] or [("", "", "")]
        self.op: np.ndarray
        self.layer: np.ndarray
        self.name: np.ndarray
        self.op, self.layer, self.name = (
            np.array(functions)[self.rows["call"]].T if size else np.empty((3, 0), "U1")
        )
        first = int(cells["start_ns"][io].min()) if size else 0
        self.span_s = (int(cells["end_ns"][io].max()) - first) * 1e-9 if size else 0.0
        self.run_s = run.length_s
        number = {call: at for at, call in enumerate(summary.calls)}
        theirs = np.array([number.get(call, -1) for call in table.calls] or [-1])[table.call]
        mine = np.flatnonzero((theirs >= 0) & is_io_of_calls(table.calls)[table.call])
        self.ranks, self._task = np.unique(table.rank[mine], return_inverse=True)
        self._by_task = {
            "call": theirs[mine],
            "n": table.count[mine],
            "bytes": table.moved[mine],
            "own_ns": table.time_ns[mine] - table.inner_ns[mine],
            "time_ns": table.time_ns[mine],
        }
        self._functions = np.array(functions)
        self._recorder_s = sum(recorder_cost_s(run.info, int(self.rows["n"].sum()), run.length_s)) / 2
        if self._recorder_s:
            for each in (self.rows, self._by_task):
                each["own_ns"] = np.maximum(each["own_ns"] - CLOCK_NS * each["n"], each["n"])

    def __len__(self) -> int:
        return len(self.rows["n"])

    def of_tasks(
        self, column: str, op: Sequence[str], layer: str | Sequence[str], but: Iterable[str] = ()
    ) -> np.ndarray:
        """Add up a column (``n``, ``bytes``, ``own_ns`` or ``time_ns``) by task: shape (tasks,)."""
        names = self._functions[self._by_task["call"]]
        chosen = np.isin(names[:, 0], op) & np.isin(names[:, 1], layer) & ~np.isin(names[:, 2], list(but))
        return np.bincount(self._task, self._by_task[column] * chosen, len(self.ranks))

    def calls_of_tasks(self) -> np.ndarray:
        """Count the calls of each function by task: shape (functions, tasks)."""
        shape = len(self._functions), len(self.ranks)
        counts = np.bincount(
            self._by_task["call"] * shape[1] + self._task, self._by_task["n"], np.prod(shape)
        )
        return counts.reshape(shape)

    def account(self, findings: Sequence[Finding] = ()) -> Account:
        """Divide the time of the run, as the busiest task spends it; sums do not show what findings share."""
        at = int(np.argmax(self.busy_s))
        rank = int(self.ranks[at])
        mine = {name: column[self._task == at] for name, column in self._by_task.items()}
        moves = np.isin(self._functions[mine["call"], 0], ("read", "write")) & (mine["bytes"] > 0)
        exchanged = messages_s(self.run.reading.ranks)
        waits = len(exchanged) == self.run.tasks > 1
        most_s = float(exchanged.min()) if waits else 0.0
        waited_s = float(np.median(exchanged)) - most_s if waits else 0.0
        io_s = float(self.busy_s[at])  # threads of a task together may be in calls for longer than the run
        slow_s = min(io_s - float(np.median(self.busy_s)), waited_s)
        entries = [Entry(SLOW_TASK, slow_s, rank=rank)]
        for name, chosen in ((CALLS, ~moves), (BYTES, moves)):
            own_ns = np.where(chosen, mine["own_ns"], 0.0)
            call = str(self._functions[mine["call"][int(np.argmax(own_ns))], 2]) if own_ns.any() else ""
            entries.append(Entry(name, 1e-9 * float(own_ns.sum()) * (1 - slow_s / max(io_s, 1e-9)), call))
        late = Entry(LATE_TASK, waited_s - slow_s, rank=int(np.argmin(exchanged)) if waits else None)
        recorder_s = self._recorder_s * float(mine["n"].sum() / self.run.info.threads_of_tasks[rank])
        most = str(self._functions[mine["call"][int(np.argmax(mine["n"]))], 2])
        outside = Entry(RECORDER, recorder_s, most), late, Entry(MESSAGES, most_s)
        return divide(self.run_s, io_s, findings, entries, outside, len(self.ranks) == 1)

    @cached_property
    def busy_s(self) -> np.ndarray:
        """Time that each task spends in I/O: shape (tasks,)."""
        return np.bincount(self._task, self._by_task["own_ns"], len(self.ranks)) * 1e-9

    def divided(self, saved_ns: np.ndarray) -> np.ndarray:
        """Divide savings of rows among the tasks, by the calls that each made of the function."""
        size = len(self._functions)
        saved = np.bincount(self.rows["call"], saved_ns, size)
        calls = np.bincount(self.rows["call"], self.rows["n"], size)
        each = np.divide(saved, calls, out=np.zeros(size), where=calls > 0)
        mine = self._by_task["n"] * each[self._by_task["call"]] * 1e-9
        found: np.ndarray = np.bincount(self._task, mine, len(self.ranks))
        return found

    def gain_s(self, saved_s: np.ndarray) -> float:
        """Compute by how much the busiest task would be less busy: the likely gain of a run."""
        if not len(saved_s):
            return 0.0
        left = np.maximum(self.busy_s - saved_s, 0.0)
        return min(float(self.busy_s.max() - left.max()), self.span_s)

    def quantile_ns(self, share: float) -> np.ndarray:
        """Look up a quantile of the durations of each row, in ns: shape (n,)."""
        group, number, count = self._histogram
        found = np.zeros(len(self))
        begin = np.searchsorted(group, np.arange(len(self)))
        end = np.append(begin, len(group))[1:]
        for row, (first, last) in enumerate(zip(begin, end, strict=True)):
            counts = np.cumsum(count[first:last])
            if len(counts):
                found[row] = _middles_ns()[number[first + np.searchsorted(counts, share * counts[-1])]]
        return found

    def usual_ns(self) -> np.ndarray:
        """Compute the mean duration of each row without outliers (`Case.usual_ns`): shape (n,)."""
        group, number, count = self._histogram
        each_ns = _middles_ns()[number]
        usual = count * (each_ns <= OUTLIER * self.quantile_ns(0.5)[group])
        total = np.bincount(group, usual, len(self))
        found: np.ndarray = np.bincount(group, usual * each_ns, len(self)) / np.maximum(total, 1)
        return found

    @cached_property
    def _histogram(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        cell, number, count = self.run.summary.histogram
        group = self._group[cell]
        order = np.lexsort((number, group))
        order = order[group[order] >= 0]
        return group[order], number[order], count[order]


def _middles_ns() -> np.ndarray:
    """Return the duration in the middle of each bin of the bin law."""
    low = bin_low_ns().astype(np.float64)
    middles: np.ndarray = (low + np.append(low[1:], low[-1])) / 2
    return middles


def summed_finding(
    case: SummedCase,
    cause: str,
    title: str,
    checks: Sequence[Check],
    evidence: dict[str, Any],
    saved_s: Sequence[np.ndarray],
    op: str | None = None,
    layer: str | None = "posix",
    calls: Sequence[str] = (),
    files: tuple[str, ...] = (),
    advice: str = "",
) -> Finding | None:
    """Make a finding from sums (`finding_of_bounds`)."""
    low_s, likely_s, high_s = saved_s
    # Every task saves the least, whichever comes last; and none saves more than the most.
    low = float(low_s.min()) if len(low_s) else 0.0
    bounds_s = (low, case.gain_s(likely_s), float(high_s.max(initial=0.0)))
    makers = case.ranks[likely_s > 0] if (likely_s > 0).any() else case.ranks
    where = Where(
        op=op,
        layer=layer,
        calls=tuple(calls) or None,
        files=files,
        file_count=len(files),
        tasks=len(makers),
        ranks=find_spans(makers, MOST_SPANS),
    )
    return finding_of_bounds(cause, case.run_s, bounds_s, case.span_s, where, title, checks, evidence, advice)


def without_order(what: str) -> Check:
    """Return the check that sums leave open."""
    return Check("who-waits", None, f"sums do not show {what}: record with ensio run --mode trace to see it")
