"""What the task that came last did before: calls, or something that no call shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ensembles.model.units import seconds_text

LEAST_PART = 0.5
"""Part of its lateness that a task spends outside of I/O calls, more than the others do, to be told so."""

LEAST_RATIO = 2.0
"""Least ratio of its time outside to that of the others."""


@dataclass(frozen=True)
class LateOutside:
    """A task that is late because of what it did outside of I/O calls: computation, or messages.

    Attributes
    ----------
    rank : int
    outside_s : float
        Time until its last calls of the phases in which it was in no I/O call, summed over phases.
    others_s : float
        The same of the other tasks, in the median.
    left_s : float
        Part of `outside_s` beyond that of the others in which it was still inside `call`, which the others
        had left: it waited for a processor, or for messages of the call. 0: less than half, or not known.
    call : str
        The collective call.
    """

    rank: int
    outside_s: float
    others_s: float
    left_s: float = 0.0
    call: str = ""

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)

    def after(self, left_s: float, call: str) -> LateOutside:
        """Return the same with the collective call that it leaves late, if that explains half or more."""
        if left_s < LEAST_PART * (self.outside_s - self.others_s):
            return self
        return replace(self, left_s=left_s, call=call)

    def __str__(self) -> str:
        if self.call:
            return (
                f"rank {self.rank} is late because it leaves {self.call} {seconds_text(self.left_s)} later "
                "than the others in all, although all had entered it: it waits there for a processor, or for "
                "messages"
            )
        return (
            f"rank {self.rank} is late because it was {seconds_text(self.outside_s)} outside of I/O calls, "
            f"the others {seconds_text(self.others_s)} in the median: look at its computation and messages"
        )


def late_outside(
    arrival: np.ndarray, busy: np.ndarray, present: np.ndarray
) -> tuple[int, float, float] | None:
    """Find the task that is late, and whether the time outside of its calls is why.

    Number of the task, its time outside, and that of the other tasks in the median; None: its calls made it
    late, or there is one task only.
    """
    several = present.sum(axis=1) > 1
    if not several.any():
        return None
    here = np.where(present, arrival, np.nan)[several].astype(np.float64)
    outside = np.maximum(here - busy[several], 0.0)
    worst = int(np.argmax(np.nansum(here - np.nanmedian(here, axis=1)[:, None], axis=0)))
    mine = np.flatnonzero(present[several][:, worst])
    others = np.delete(here[mine], worst, axis=1)
    late = float((here[mine, worst] - np.nanmedian(others, axis=1)).sum())
    theirs = float(np.nanmedian(np.delete(outside[mine], worst, axis=1), axis=1).sum())
    own = float(outside[mine, worst].sum())
    is_why = late > 0 and own - theirs >= LEAST_PART * late and own >= LEAST_RATIO * theirs
    return (worst, own, theirs) if is_why else None


@dataclass(frozen=True)
class LateInPhase:
    """Where the last task of a phase lost the time by which it is late, if not in its I/O calls."""

    # By how much later its first I/O call of the phase began than that of the task in the middle
    # (`PhaseTotals.middle_task`)
    begins_s: float
    # between_s, other_between_s: Time from its first call to the return of its last one in which it was in no
    # I/O call, and the same of the task in the middle
    between_s: float
    other_between_s: float
    left_s: float | None = None  # By how much later it left `call`. None: not known.
    call: str = ""  # The collective call before the phase, in which all tasks met; ``""``: not known

    @property
    def is_before(self) -> bool:
        """Whether most of it was before its first call, not between its calls."""
        return self.begins_s >= self.between_s - self.other_between_s

    @property
    def cell(self) -> str:
        """What tables say in place of a call."""
        return "late start" if self.is_before else "between calls"

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)

    def text(self, middle_task: int | None) -> str:
        """Say where the time was, in comparison with the task in the middle."""
        if not self.is_before:
            return (
                f"it was {seconds_text(self.between_s)} outside of these calls between the first and the "
                f"last, rank {middle_task}, in the middle, {seconds_text(self.other_between_s)}: look at "
                "what it does there (computation, messages, other I/O)"
            )
        begins = f"it began its first call {seconds_text(self.begins_s)} later"
        later = f"{begins} than rank {middle_task}, in the middle"
        if self.left_s is not None and self.left_s >= LEAST_PART * self.begins_s:
            return (
                f"{later}, as it left {self.call} {seconds_text(self.left_s)} later, although all tasks had "
                "entered it: it waited there for a processor, or for messages"
            )
        if self.left_s is not None:
            left = f"{seconds_text(self.left_s)} later" if self.left_s > 0 else "no later"
            later += f", although it left {self.call} {left}"
        return f"{later}: look at what it does before (computation, messages, other I/O)"
