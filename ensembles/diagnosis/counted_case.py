"""What counters say of a run, as the rules need it: times by file and by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.account import Account, Entry
from ensembles.diagnosis.accounting import divide
from ensembles.diagnosis.finding import (
    MOST_FILES,
    WORTH_A_LINE,
    Check,
    Finding,
    NotApplicable,
    Where,
    rate_confidence,
)
from ensembles.diagnosis.limits import MARGIN
from ensembles.diagnosis.principles import ABOVE, BYTES, CALLS, cause_of
from ensembles.diagnosis.remedy import severity_of
from ensembles.model.spans import find_spans

if TYPE_CHECKING:
    from ensembles.model.counters import ModuleCounters
    from ensembles.run.run import Run


_STORAGE = ("POSIX", "STDIO")


def counted_account(run: Run, findings: Sequence[Finding]) -> Account | None:
    """Divide the time of a job, as the slowest rank spends it in separate and in shared files."""
    modules, run_s = run.counters.modules, run.counters.run_time_s
    if not modules or run_s <= 0 or run.counters.overlaps:
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
    above_s = min(run.counters.slowest_task_s, run_s) - sum(times_s.values())
    inside = (
        Entry(ABOVE, max(above_s, 0.0), run.counters.main_layer[0].module),
        Entry(CALLS, times_s["meta_s"]),
        Entry(BYTES, times_s["read_s"] + times_s["write_s"]),
    )
    return divide(run_s, sum(each.time_s for each in inside), findings, inside)


LAYERS = {"POSIX": "posix", "MPI-IO": "mpiio"}


@dataclass(frozen=True)
class CountedCase:
    """A run that keeps counters instead of calls."""

    run: Run
    module: ModuleCounters  # Counters of one interface
    run_s: float  # Length of the job
    layer: str  # The interface, as calls name it

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
    return CountedCase(run, module, run.counters.run_time_s, LAYERS[name])


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
    most_s = min(case.run_s if most_s is None else most_s, max(high_s, (1 + MARGIN) * likely_s))
    interval = max(min(low_s, (1 - MARGIN) * likely_s), 0.0), most_s
    confidence = rate_confidence(tuple(checks))
    if not confidence or most_s < WORTH_A_LINE * case.run_s or most_s <= 0:
        return None
    order = np.flatnonzero(chosen)[np.argsort(-case.time_s[chosen], kind="stable")]
    names = tuple(case.run.files[number] for number in case.files["file"][order[:MOST_FILES]].tolist())
    ranks = case.files["slowest_rank"][chosen]
    shared = case.files["is_shared"][chosen].any() or (ranks < 0).any()
    where = Where(
        op=op,
        layer=case.layer,
        files=names,
        file_count=int(chosen.sum()),
        tasks=case.run.tasks if shared else len(np.unique(ranks)),
        ranks=((0, case.run.tasks - 1),) if shared else find_spans(ranks.astype(np.int64)),
    )
    return Finding(
        cause,
        severity_of(interval, likely_s, case.run_s, cause),
        confidence,
        where,
        {**evidence, "run_s": case.run_s},
        tuple(checks),
        advice or cause_of(cause).advice,
        interval,
        title,
    )
