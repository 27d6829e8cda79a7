"""What counters say of a run, as the rules need it: times by file and by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.diagnosis.finding import MOST_FILES, Check, Finding, Where
from ensembles.diagnosis.remedy import finding_of_bounds
from ensembles.diagnosis.rule import NotApplicable
from ensembles.model.spans import find_spans

if TYPE_CHECKING:
    from ensembles.model.counters import ModuleCounters
    from ensembles.run.run import Run

LAYERS = {"POSIX": "posix", "MPI-IO": "mpiio"}


@dataclass(frozen=True)
class CountedCase:
    """A run that keeps counters instead of calls.

    Attributes
    ----------
    run : Run
    module : ModuleCounters
        Counters of one interface.
    files : dict of str to ndarray, shape (n,)
        `ModuleCounters.by_file`.
    run_s : float
        Length of the job.
    layer : str
        The interface, as calls name it.
    """

    run: Run
    module: ModuleCounters
    run_s: float
    layer: str

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
        """Compute by how much the slowest rank would be faster, if ranks saved time in files.

        Parameters
        ----------
        saved_s : ndarray of float64, shape (n,)
            Time that the slowest rank of each file saves. Of shared files every rank may be the slowest.
        """
        files, saved_s = self.files, np.minimum(saved_s, self.time_s)
        own = (files["is_shared"] == 0) & (files["slowest_rank"] >= 0)
        rank = files["slowest_rank"][own].astype(np.int64)
        before = np.bincount(rank, self.time_s[own], self.run.tasks)
        after = before - np.bincount(rank, saved_s[own], self.run.tasks)
        gain = float(before.max(initial=0.0) - after.max(initial=0.0)) + float(saved_s[~own].sum())
        return min(gain, self.run_s)


def counted_case(run: Run, name: str = "POSIX") -> CountedCase:
    """Return the counters of one interface of a run.

    Parameters
    ----------
    run : Run
    name : {"POSIX", "MPI-IO"}
        Darshan's module.

    Raises
    ------
    NotApplicable
        It has none.
    """
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
    """Make a finding from counters (`finding_of_bounds`).

    Parameters
    ----------
    chosen : ndarray of bool, shape (n,)
        Files that the finding concerns.
    op : str, optional
        Kind of calls.
    most_s : float, optional
        What no interval exceeds. Default: the whole run.
    """
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
    most_s = case.run_s if most_s is None else most_s
    return finding_of_bounds(cause, case.run_s, bounds_s, most_s, where, title, checks, evidence, advice)
