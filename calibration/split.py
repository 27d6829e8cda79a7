"""Coverage of the predicted time of the slowest of N tasks that make k calls each.

Calls of new phases have the distribution of the measured ones, with a factor that the phase shares, one that
the calls of a task share in a phase, and one that they share in all phases.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.sums.consecutive_calls import ConsecutiveCalls
from ensembles.statistics.sums.split import predict_split

CALLS = (1, 2, 4, 8)
SEED = 5


def _log_normal(score: np.ndarray) -> np.ndarray:
    return np.exp(0.5 * score)


def _two_modes(score: np.ndarray) -> np.ndarray:
    """A tenth of the calls takes five times as long."""
    place = ndtr(score)
    fast = ndtri(np.clip(place / 0.9, 1e-12, 1 - 1e-12))
    slow = ndtri(np.clip((place - 0.9) / 0.1, 1e-12, 1 - 1e-12))
    return np.where(place < 0.9, np.exp(0.15 * fast), 5 * np.exp(0.15 * slow))


SHAPES = {"log-normal, sd 0.5": _log_normal, "two modes, 10 % slow": _two_modes}


def _one_slow(rng: np.random.Generator, tasks: int) -> np.ndarray:
    return np.where(np.arange(tasks) == tasks // 3, 3.0, 1.0)


def _gamma(rng: np.random.Generator, tasks: int) -> np.ndarray:
    return rng.gamma(1 / 0.3**2, 0.3**2, tasks)


def _equal(rng: np.random.Generator, tasks: int) -> np.ndarray:
    return np.ones(tasks)


FACTORS = {"equal": _equal, "gamma, sd 0.3": _gamma, "one x 3": _one_slow}
"""Factors of the tasks that last through all phases."""


def draw(
    rng: np.random.Generator, shape, phases: int, tasks: int, k: int, by_phase: float, by_task: float
) -> np.ndarray:
    """Durations, shape (phases, tasks, k), with these correlations of normal scores."""
    score = np.sqrt(by_phase) * rng.normal(size=(phases, 1, 1))
    score = score + np.sqrt(by_task) * rng.normal(size=(phases, tasks, 1))
    return shape(score + np.sqrt(1 - by_phase - by_task) * rng.normal(size=(phases, tasks, k)))


def coverage(
    name: str, factors: str, phases: int, made: int, by_phase: float, by_task: float, trials: int
) -> dict[int, tuple]:
    """Share of new phases whose slowest task lies in the 90 % interval, its error, width and refusals."""
    shape = SHAPES[name]
    rng, tasks, found = np.random.default_rng([SEED, phases]), 64, {k: [] for k in CALLS}
    for _ in range(trials):
        factor = FACTORS[factors](rng, tasks)[:, None]
        measured = factor * draw(rng, shape, phases, tasks, made, by_phase, by_task)
        phase, rank, _ = (index.ravel() for index in np.indices(measured.shape))
        durations_s = measured.ravel()
        known = ConsecutiveCalls.from_calls(durations_s, rank, phase)
        for split in predict_split(
            CountedDurations.from_durations(durations_s, phase), CALLS, tasks, known
        ).splits:
            if split.low_s is None:
                continue
            new = (factor * draw(rng, shape, 50, tasks, split.calls, by_phase, by_task)).mean(2).max(1)
            inside = np.mean((new >= split.low_s) & (new <= split.high_s))
            found[split.calls].append((inside, split.high_s / split.low_s))
    return {
        k: (
            np.mean([one[0] for one in each]),
            np.std([one[0] for one in each], ddof=1) / len(each) ** 0.5,
            np.median([one[1] for one in each]),
            1 - len(each) / trials,
        )
        for k, each in found.items()
        if len(each) > 1
    }


def main(quick: bool = False) -> None:
    """Print the table."""
    trials = 10 if quick else 40
    cases = [
        (name, factors, phases, made, by_phase, by_task, trials)
        for name in SHAPES
        for factors, by_phase, by_task in (
            ("equal", 0.0, 0.0),
            ("equal", 0.3, 0.0),
            ("equal", 0.3, 0.3),
            ("gamma, sd 0.3", 0.3, 0.0),
            ("one x 3", 0.3, 0.0),
        )
        for phases, made in ((5, 4), (20, 1), (20, 4))
    ]
    rows = []
    for (name, factors, phases, made, by_phase, by_task, _), found in zip(
        cases, in_order(coverage, cases), strict=True
    ):
        cells = [_cell(found[k]) if k in found else "refused" for k in CALLS]
        rows.append((name, factors, by_phase, by_task, phases, made, *cells))
    say(
        "Slowest of 64 tasks that make k calls: coverage of the 90 % interval, its standard error, and the "
        f"median width (high / low); {trials} trials of 50 new phases."
    )
    show(rows, ("calls", "tasks", "by phase", "by task", "phases", "made", *(f"k = {k}" for k in CALLS)))


def _cell(found: tuple) -> str:
    share, error, width, refused = found
    return f"{share:.2f} ± {error:.2f} (x {width:.2f}{f', {refused:.0%} refused' if refused else ''})"
