"""The account of a log with counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.account import Account, Entry, divide
from ensembles.diagnosis.finding import Finding
from ensembles.diagnosis.principles import ABOVE, BYTES, CALLS

if TYPE_CHECKING:
    from ensembles.run.run import Run

_LIBRARIES = ("PNETCDF_VAR", "H5D", "MPI-IO")
_STORAGE = ("POSIX", "STDIO")


def counted_account(run: Run, findings: Sequence[Finding]) -> Account | None:
    """Divide the time of a job, as the slowest rank spends it in files of its own and in shared ones.

    Parameters
    ----------
    run : Run
    findings : sequence of Finding

    Returns
    -------
    Account or None
        None: the log has no counters of I/O, or no length of the job.
    """
    modules, run_s = run.counters.modules, run.counters.run_time_s
    if not modules or run_s <= 0:
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
    inside = (
        _above_storage(run),
        Entry(CALLS, times_s["meta_s"]),
        Entry(BYTES, times_s["read_s"] + times_s["write_s"]),
    )
    return divide(run_s, sum(each.time_s for each in inside), findings, inside)


def _above_storage(run: Run) -> Entry:
    """Compute the mean time of tasks in the library with most time and in no storage call."""
    modules = run.counters.modules
    above = [modules[name] for name in _LIBRARIES if name in modules]
    if not above or "POSIX" not in modules:
        return Entry(ABOVE, 0.0)
    largest = max(above, key=lambda module: module.time_s)
    storage_s = sum(modules[name].time_s for name in _STORAGE if name in modules)
    above_s = (largest.time_s - storage_s) / max(run.tasks, 1)
    return Entry(ABOVE, min(max(above_s, 0.0), run.counters.run_time_s), largest.module)
