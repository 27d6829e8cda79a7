"""The evidence of a run that keeps sums, or the counters of a log, in place of calls.

Sums are by task, function and size class, without phases and files. The recorder keeps them in every mode:
sums by function and size class, and sums by task and function. Both are divided alike. Nothing shows when a
task makes its calls, so tasks are taken to be slow at the same time. Counters are times by file and by rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.evidence import Evidence, stripes_of
from ensembles.diagnosis.finding import (
    MOST_FILES,
    Check,
    Finding,
    NotApplicable,
    Where,
    divide,
    rate_confidence,
    refuse_if_it_matters,
)
from ensembles.diagnosis.limits import LEAST_CALLS
from ensembles.diagnosis.path_calls import looks_up
from ensembles.diagnosis.principles import ABOVE, BYTES, CALLS, cause_of
from ensembles.diagnosis.with_meetings import OfSums
from ensembles.model.events import is_io_of_calls
from ensembles.model.levels import A_TENTH, MOST, WORTH_A_LINE
from ensembles.model.spans import find_spans
from ensembles.structure.libraries import LIBRARIES, WITH_WAITS
from ensembles.structure.phases.critical_path import critical_path
from ensembles.summaries.bins import bin_low_ns
from ensembles.summaries.keyed_sums import sum_by_keys

if TYPE_CHECKING:
    from ensembles.diagnosis.case import Case
    from ensembles.model.counters import ModuleCounters
    from ensembles.run.run import Run


class EvidenceOfSums(Evidence):
    """The evidence of the recorded sums of a run."""

    time_model = OfSums
    unsure = (
        Check(
            "order",
            "sums show neither the order of calls nor who waits for whom: record with ensio run --mode trace",
            None,
        ),
    )

    def places(self, rows: dict[str, np.ndarray]) -> None:
        """Return None: sums do not show when and where calls were made."""

    @classmethod
    def for_run(cls, run: Run) -> EvidenceOfSums:
        """Make the evidence of a run."""
        found = cls(None, stripes_of(run))
        place, kind = _sums_of_sizes(run)
        if not len(kind["n"]):
            return found
        rows = _rows_of_tasks(run, kind)
        found.calls.add_summed(rows | {"repeats": _repeats(run, rows)})
        cell, number, count = run.summary.histogram
        known = place[cell] >= 0
        row = place[cell[known]]
        each = {name: kind[name][row] for name in ("call", "size")}
        found.durations.add_summed(each | {"bin": number[known], "n": count[known]})
        return found

    @staticmethod
    def bin_ns(number: np.ndarray) -> np.ndarray:
        """Return the duration in the middle of a bin of the bin law."""
        low = bin_low_ns().astype(np.float64)
        middle: np.ndarray = ((low + np.append(low[1:], low[-1])) / 2)[number]
        return middle


def libraries_of_sums(run: Run) -> frozenset[str]:
    """Return the libraries inside whose calls others were recorded: the rest of their time is known."""
    known = run.summary.calls if run.reading.has_summary else run.calls  # else sums need a pass
    if LIBRARIES.keys().isdisjoint(call.layer for call in known):
        return frozenset()
    cells, layers = run.summary.cells, np.array([call.layer for call in run.summary.calls] or [""])
    with_inner = set(layers[cells["call"][cells["inner_ns"] > 0]].tolist())
    return frozenset(with_inner.intersection(LIBRARIES).difference(WITH_WAITS))


def _sums_of_sizes(run: Run) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Add up the cells of I/O by function and size class; return the row of each (-1: none), and the rows."""
    cells, calls = run.summary.cells, run.summary.calls
    numbers = {call: at for at, call in enumerate(run.calls)}
    number = np.array([numbers.get(call, -1) for call in calls] or [-1])[cells["call"]]
    is_io = is_io_of_calls(calls)[cells["call"]] & (number >= 0) if len(calls) else number > 0
    place = np.empty(len(number), np.int32)
    sums = {name: cells[name] for name in ("count", "outer_count", "moved")}
    sums["own_ns"] = cells["time_ns"] - cells["inner_ns"]
    rows = sum_by_keys({"call": number, "size": cells["size_class"]}, sums, {}, {}, is_io, place)
    return place, rows


def _rows_of_tasks(run: Run, kind: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Divide the calls of each task and function by the sizes that all tasks together use."""
    table = run.reading.ranks
    numbers = {call: at for at, call in enumerate(run.calls)}
    number = np.array([numbers.get(call, -1) for call in table.calls] or [-1])[table.call]
    order = np.lexsort((kind["size"], kind["call"]))
    calls, first, sizes = np.unique(kind["call"][order], return_index=True, return_counts=True)
    mine = np.flatnonzero(np.isin(number, calls))
    at = np.searchsorted(calls, number[mine])
    many = sizes[at]
    own = np.repeat(mine, many)
    size = order[np.arange(many.sum()) - np.repeat(np.cumsum(many) - many - first[at], many)]
    shares = {}
    for name in ("count", "moved", "own_ns"):
        whole = np.bincount(kind["call"], kind[name], int(calls.max()) + 1)
        shares[name] = kind[name][size] / np.maximum(whole[kind["call"][size]], 1)
    # What is rounded off goes to the next task, so that the calls of a size are as many as all tasks made.
    by_size = np.lexsort((table.rank[own], size))
    n = np.empty(len(own), np.int64)
    n[by_size] = np.diff(np.rint(np.cumsum((table.count[own] * shares["count"])[by_size])), prepend=0)
    own_ns = table.time_ns - table.inner_ns
    rows = {
        "phase": np.zeros(len(own), np.int64),
        "rank": table.rank[own],
        "call": number[own],
        "size": kind["size"][size],
        "depth": (2 * kind["outer_count"] < kind["count"])[size].astype(np.int64),
        "n": n,
        "time_ns": np.rint(own_ns[own] * shares["own_ns"]).astype(np.int64),
        "bytes": np.rint(table.moved[own] * shares["moved"]).astype(np.int64),
    }
    # A task is taken to be in I/O from the begin on, until it has made all calls.
    busy_ns = np.bincount(rows["rank"], rows["time_ns"]).astype(np.int64)
    rows |= {"start_ns": np.zeros(len(own), np.int64), "end_ns": busy_ns[rows["rank"]]}
    rows["log_ns"] = n * np.log(np.maximum(rows["time_ns"], 1) / np.maximum(n, 1))
    return {name: column[n > 0] for name, column in rows.items()}


def _repeats(run: Run, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Count the lookups of each row that must be repetitions: beyond the files that the run knows."""
    op, layer, name = (
        np.array([getattr(call, of) for call in run.calls])[rows["call"]] for of in ("op", "layer", "name")
    )
    asks = (layer == "posix") & looks_up(name, op)
    found = np.zeros(len(asks))
    for each in ("open", "meta"):
        mine = asks & (op == each)
        calls = np.bincount(rows["rank"], np.where(mine, rows["n"], 0))[rows["rank"]]
        again = np.maximum(calls - (len(run.files) - 1), 0)
        often = mine & (calls >= LEAST_CALLS) & (again >= MOST * calls)
        found += np.where(often, rows["n"] * again / np.maximum(calls, 1), 0.0)
    return np.rint(found).astype(np.int64)


def refuse(case: Case, at_most_s: float, why: str) -> None:
    """Refuse a run of which a cause could take a notable part."""
    refuse_if_it_matters(at_most_s, case.run_s, f", and {why}: {case.run.info.how_to_keep_calls}", False)


def check_straggler(case: Case, *uses: object) -> None:
    """Refuse a run in which one task is in I/O for notably longer than the median task."""
    if len(case.ranks) < 2:
        raise NotApplicable("one task makes the I/O calls, and has no others to be compared with")
    busy_s = 1e-9 * case.by_cell(case.rows["time_ns"])
    why = "sums by task have no phases in which a slow task could be compared with the others"
    refuse(case, float(busy_s.max() - np.median(busy_s)), why)


def check_coordination(case: Case) -> None:
    """Refuse a run whose collective calls take notably longer than the storage inside them."""
    collective = np.char.endswith(case.name, "_all") & (case.layer == "mpiio")
    own_s = 1e-9 * case.by_cell(np.where(collective, case.rows["time_ns"], 0.0))
    why = "sums do not divide the time of collective calls into waiting for the last task and messages"
    refuse(case, float(own_s[own_s > 0].min(initial=np.inf)) if own_s.any() else 0.0, why)


_STORAGE = ("POSIX", "STDIO", "DAOS")


def counted_account(run: Run, findings: Sequence[Finding]) -> Account | None:
    """Divide the time of a job, as the slowest rank spends it in separate and in shared files."""
    modules, path = run.counters.modules, critical_path(run, None)
    if not modules or path is None:
        return None
    names = [name for name in _STORAGE if name in modules] or list(modules)[:1]
    times_s = dict.fromkeys(("read_s", "write_s", "meta_s"), 0.0)
    own = {name: np.zeros(run.tasks) for name in times_s}
    for module in (modules[name] for name in names):
        shared = module.by_file["is_shared"] > 0
        whole_s = sum(float(module.by_file[name][shared].sum()) for name in times_s)
        for name in times_s:
            np.add.at(own[name], module.by_rank["rank"], module.by_rank[name])
            of_shared = float(module.by_file[name][shared].sum()) / max(whole_s, 1e-12)
            times_s[name] += module.shared_high_s * of_shared
    slowest = int(np.argmax(sum(own.values())))
    times_s = {name: time_s + float(own[name][slowest]) for name, time_s in times_s.items()}
    above_s = path.io_s - sum(times_s.values())
    inside = (
        Entry(ABOVE, max(above_s, 0.0), run.counters.main_layer[0].module),
        Entry(CALLS, times_s["meta_s"]),
        Entry(BYTES, times_s["read_s"] + times_s["write_s"]),
    )
    return divide(path, findings, inside)


@dataclass(frozen=True)
class CountedCase:
    """A run that keeps counters instead of calls."""

    run: Run
    module: ModuleCounters  # Counters of one interface
    run_s: float  # Length of the job

    @property
    def files(self) -> dict[str, np.ndarray]:
        """Counters by file."""
        return dict(self.module.by_file)

    @property
    def time_s(self) -> np.ndarray:
        """Time of the slowest rank in each file: shape (n,); 0: not known."""
        known: np.ndarray = np.nan_to_num(self.files["slowest_s"])
        return known

    def gain_s(self, saved_s: np.ndarray) -> float:
        """Compute by how much the slowest rank would be faster, if ranks saved time in files."""
        files, saved_s = self.files, np.minimum(saved_s, self.time_s)
        own = (files["is_shared"] == 0) & (files["slowest_rank"] >= 0)
        rank = files["slowest_rank"][own].astype(np.int64)
        before = np.bincount(rank, self.time_s[own], self.run.tasks)
        after = before - np.bincount(rank, saved_s[own], self.run.tasks)
        gain = float(before.max(initial=0.0) - after.max(initial=0.0)) + float(saved_s[~own].sum())
        return min(gain, self.run_s)


def counted_case(run: Run, name: str = "POSIX") -> CountedCase:
    """Return the counters of one interface of a run."""
    module = run.counters.modules.get(name)
    if module is None or not len(module.by_file["file"]):
        raise NotApplicable(f"the log has no counters of {name}: switch the module on when you record")
    return CountedCase(run, module, run.counters.run_time_s)


OTHERS_WAIT = Check("others-wait", "counters do not show whether the others wait for it", None)


def counted_finding(
    case: CountedCase,
    cause: str,
    title: str,
    checks: Sequence[Check],
    evidence: dict[str, Any],
    bounds_s: tuple[float, float, float],
    chosen: np.ndarray,
    op: str | None = None,
    most_s: float | None = None,
    advice: str = "",
) -> Finding | None:
    """Make a finding from counters; bounds of its gain are the least, the likely and the greatest one."""
    low_s, likely_s, high_s = bounds_s
    most_s = min(case.run_s if most_s is None else most_s, max(high_s, (1 + A_TENTH) * likely_s))
    interval = max(min(low_s, (1 - A_TENTH) * likely_s), 0.0), most_s
    confidence = rate_confidence(tuple(checks))
    if not confidence or most_s < WORTH_A_LINE * case.run_s or most_s <= 0:
        return None
    order = np.flatnonzero(chosen)[np.argsort(-case.time_s[chosen], kind="stable")]
    names = tuple(case.run.files[number] for number in case.files["file"][order[:MOST_FILES]].tolist())
    ranks = case.files["slowest_rank"][chosen]
    shared = case.files["is_shared"][chosen].any() or (ranks < 0).any()
    where = Where(
        op=op,
        layer=case.module.layer,
        files=names,
        file_count=int(chosen.sum()),
        tasks=case.run.tasks if shared else len(np.unique(ranks)),
        ranks=((0, case.run.tasks - 1),) if shared else find_spans(ranks.astype(np.int64)),
    )
    return Finding(
        cause,
        confidence,
        where,
        {**evidence, "run_s": case.run_s},
        tuple(checks),
        advice or cause_of(cause).advice,
        interval,
        title,
        likely_s=likely_s,
    )
