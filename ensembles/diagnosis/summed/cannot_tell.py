"""Causes that sums cannot show: what they could cost at most, and what to record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import FROM_SHARE, Finding
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.case import SummedCase
from ensembles.model.units import seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run


def check_straggler(run: Run) -> Finding | None:
    """Refuse a run in which one task is in I/O for notably longer than the median task.

    Raises
    ------
    NotApplicable
        Without phases, chance and more bytes look like a slow task.
    """
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
    """Refuse a run whose collective calls take notably longer than the storage inside them.

    Raises
    ------
    NotApplicable
        In sums, waiting for the task that comes last looks like coordination.
    """
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
    """Refuse a run of which a cause could take a notable part.

    Raises
    ------
    NotApplicable
    """
    if at_most_s >= FROM_SHARE["warning"] * case.run_s:
        raise NotApplicable(
            f"it could cost up to {seconds_text(at_most_s)} of this run, and {why}: "
            f"{case.run.info.how_to_keep_calls}",
            at_most_s,
            suspected=False,
        )
