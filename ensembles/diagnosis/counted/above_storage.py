"""Time of libraries outside of storage calls, in counters: no rule knows what it was spent on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ensembles.diagnosis.finding import FROM_SHARE
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
