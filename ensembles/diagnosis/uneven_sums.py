"""Tasks that move more bytes than the others, in sums by task: of a recorder, or of the counters of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.diagnosis.finding import Check
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.units import count_text, number_text

LEAST_RATIO, MOST_PER_BYTE = 1.25, 3.0
_MOVING = 0.5


@dataclass(frozen=True)
class Uneven:
    """Tasks that move more bytes than the mean, at the time per byte that all have.

    Attributes
    ----------
    heavy : ndarray of bool, shape (tasks,)
    left : ndarray of float64, shape (tasks,)
        Part of its time that a task keeps if the bytes are evened out.
    title : str
    checks : tuple of Check
    evidence : dict of str to float
    """

    heavy: np.ndarray
    left: np.ndarray
    title: str
    checks: tuple[Check, ...]
    evidence: dict[str, float]


def find_uneven(ranks: np.ndarray, moved: np.ndarray, time_s: np.ndarray, unknown: Check) -> Uneven | None:
    """Find tasks that move more bytes than the others.

    Parameters
    ----------
    ranks, moved, time_s : ndarray, shape (tasks,)
        Bytes and time of the reads and writes of each task.
    unknown : Check
        What sums leave open: whether the others wait.
    """
    mean = float(moved.mean())
    heavy = moved >= LEAST_RATIO * max(mean, 1.0)
    light = (moved > 0) & ~heavy
    if not heavy.any() or not light.any() or (moved > 0).mean() < _MOVING:
        return None
    per_byte = np.divide(time_s, moved, out=np.zeros(len(moved)), where=moved > 0)
    alike = float(np.median(per_byte[heavy]) / max(float(np.median(per_byte[light])), 1e-30))
    if alike > MOST_PER_BYTE:
        return None  # something else than the bytes makes these tasks slow
    number, most = int(heavy.sum()), float(moved.max() / mean)
    move = f"{'moves' if number == 1 else 'move'} up to {number_text(most)} times the mean"
    who = f"{count_text(number, 'task')} ({some_spans_text(find_spans(ranks[heavy]))})"
    same = f"their time per byte is {number_text(alike, 2)} times that of the others"
    return Uneven(
        heavy,
        np.where(heavy, mean / np.maximum(moved, 1), 1.0),
        f"{number:,} of {len(ranks):,} tasks {move}",
        (Check("more-bytes", True, f"{who} {move}"), Check("same-time-per-byte", True, same), unknown),
        {"most_to_mean": most, "tasks_heavy": number},
    )
