"""Tasks that move more bytes than others, in sums by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.finding import Check, Finding, numbers_text
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.case import SummedCase, summed_finding, without_order
from ensembles.model.units import count_text, digits_text
from ensembles.structure.phases.waiting import tasks_meet

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEAST_RATIO, MOST_PER_BYTE = 1.25, 3.0
NO_OTHERS = "one task has no others to be compared with"
NOBODY_WAITS = (
    "the tasks are processes without MPI and without barriers: nothing recorded shows that they wait for "
    "each other"
)
_MOVING = 0.5


def find_summed(run: Run, advice: str) -> Finding | None:
    """Even the bytes of the tasks out, at the time per byte that each has."""
    case = SummedCase(run)
    if run.tasks < 2:
        raise NotApplicable(NO_OTHERS)
    if not tasks_meet(run.info, None):
        raise NotApplicable(NOBODY_WAITS)
    if np.char.endswith(case.name, "_all").any():
        return None  # aggregators move the bytes of others
    moved = case.of_tasks("bytes", ("read", "write"), "posix")
    time_s = case.of_tasks("own_ns", ("read", "write"), "posix") * 1e-9
    mean = float(moved.mean())
    heavy = moved >= LEAST_RATIO * max(mean, 1.0)
    light = (moved > 0) & ~heavy
    if not heavy.any() or not light.any() or (moved > 0).mean() < _MOVING:
        return None
    per_byte = np.divide(time_s, moved, out=np.zeros(len(moved)), where=moved > 0)
    alike = float(np.median(per_byte[heavy]) / max(float(np.median(per_byte[light])), 1e-30))
    if alike > MOST_PER_BYTE:
        return None  # something else than the bytes makes these tasks slow
    saved = np.where(heavy, time_s * (1 - mean / np.maximum(moved, 1)), 0.0)
    tasks, most = case.ranks[heavy], float(moved.max() / mean)
    move = "moves" if len(tasks) == 1 else "move"
    who = f"{count_text(len(tasks), 'task')} ({numbers_text(tasks)})"
    checks = (
        Check("more-bytes", True, f"{who} {move} up to {digits_text(most)} times the mean"),
        Check("same-time-per-byte", True, f"their time per byte is {alike:.2g} times that of the others"),
        without_order("whether the others wait for them"),
    )
    return summed_finding(
        case,
        "imbalance",
        f"{len(tasks):,} of {len(case.ranks):,} tasks {move} up to {digits_text(most)} times the mean",
        advice,
        checks,
        {"most_to_mean": most, "tasks_heavy": len(tasks)},
        (np.zeros(len(saved)), saved, saved),
    )
