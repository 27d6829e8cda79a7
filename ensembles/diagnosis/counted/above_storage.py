"""The account of a log with counters, and its time in libraries outside of storage calls: spent on what?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.account import Account, Entry, divide
from ensembles.diagnosis.finding import FROM_SHARE, Finding
from ensembles.diagnosis.principles import BYTES, CALLS, IN_LIBRARY
from ensembles.model.units import seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

_LIBRARIES = ("PNETCDF_VAR", "H5D", "MPI-IO")
_STORAGE = ("POSIX", "STDIO")


@dataclass(frozen=True)
class AboveStorage:
    """Time in the calls of a library and in no storage call.

    Attributes
    ----------
    module : str
        Darshan's name of the library.
    above_s : float
        Mean over the tasks, s.
    run_s : float
        Length of the job, s.
    """

    module: str
    above_s: float
    run_s: float

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{seconds_text(self.above_s)} of a task's time on average "
            f"({share_text(self.above_s / self.run_s)} of the run) are in calls of {self.module} outside of "
            "storage calls: waiting for other tasks, exchange of data, or locks. Counters do not show which, "
            "so no finding gains it for certain: record the run with ensio"
        )


def above_storage(run: Run) -> AboveStorage | None:
    """Compute which time libraries take beyond that of storage calls, in a run that has counters.

    Returns
    -------
    AboveStorage or None
        Of the library with most time. None: less than a warning needs, or the log has no counters of storage
        or of libraries.
    """
    modules = run.counters.modules
    above = [modules[name] for name in _LIBRARIES if name in modules]
    if not above or "POSIX" not in modules:
        return None
    largest = max(above, key=lambda module: module.time_s)
    storage_s = sum(modules[name].time_s for name in _STORAGE if name in modules)
    run_s = run.counters.run_time_s
    above_s = min((largest.time_s - storage_s) / max(run.tasks, 1), run_s)
    if above_s < FROM_SHARE["warning"] * run_s or above_s <= 0:
        return None
    return AboveStorage(largest.module, above_s, run_s)


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
    above = above_storage(run)
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
        Entry(IN_LIBRARY, 0.0 if above is None else above.above_s, "" if above is None else above.module),
        Entry(CALLS, times_s["meta_s"]),
        Entry(BYTES, times_s["read_s"] + times_s["write_s"]),
    )
    return divide(run_s, sum(each.time_s for each in inside), findings, inside)
