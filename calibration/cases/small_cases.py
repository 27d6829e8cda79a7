"""Small and ugly shapes, as of first real runs: few phases, clustered slow calls, far outliers, clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ensembles.statistics.extremes.slowest_of_n import SlowestOfN
from ensembles.statistics.samples.counted_durations import CountedDurations

LEVEL = 0.9
SHAPES = ((5, 8), (10, 16), (20, 64), (60, 64))
NEW_PHASES = 40
CLOCK_S = 4e-3


def _calls(p: int, m: int, rng: np.random.Generator) -> np.ndarray:
    return 0.3 * rng.standard_normal((p, m))


def _clustered(p: int, m: int, rng: np.random.Generator) -> np.ndarray:
    share = rng.beta(0.5, 0.5 / 0.02 - 0.5, p)[:, None]
    return _calls(p, m, rng) + np.log(8) * (rng.random((p, m)) < share)


def _remembering(share: float, p: int, m: int, rng: np.random.Generator) -> np.ndarray:
    level = np.empty(p)
    level[0] = rng.standard_normal()
    for t in range(1, p):
        level[t] = share * level[t - 1] + np.sqrt(1 - share**2) * rng.standard_normal()
    return _calls(p, m, rng) + 0.3 * level[:, None]


KINDS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "independent": _calls,
    "phases sd 0.3": lambda p, m, rng: _calls(p, m, rng) + 0.3 * rng.standard_normal((p, 1)),
    "phases, neighbours 0.5": lambda p, m, rng: _remembering(0.5, p, m, rng),
    "phases, neighbours 0.8": lambda p, m, rng: _remembering(0.8, p, m, rng),
    "10 % of the phases x 7": lambda p, m, rng: _calls(p, m, rng) + np.log(7) * (rng.random((p, 1)) < 0.1),
    "3 % of the phases x 10": lambda p, m, rng: _calls(p, m, rng) + np.log(10) * (rng.random((p, 1)) < 0.03),
    "2 % slow x 8, clustered": _clustered,
    "1 % far outliers x 100": lambda p, m, rng: _calls(p, m, rng) + np.log(100) * (rng.random((p, m)) < 0.01),
    "Pareto, alpha 3": lambda p, m, rng: rng.exponential(size=(p, m)) / 3,
    "exponential": lambda p, m, rng: np.log(rng.exponential(size=(p, m))),
    "bounded": lambda p, m, rng: np.log(0.5 + rng.random((p, m))),
    "coarse clock, ties": lambda p, m, rng: _calls(p, m, rng) + 0.1 * rng.standard_normal((p, 1)),
}
"""Logarithms of durations over 10 ms, shape (p, m)."""


@dataclass
class Row:
    """Coverage, widths and interval scores of one kind of method.

    The interval score of the logarithm is its width plus 2 / alpha times what a value lies outside (T.
    Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", 2007).
    """

    held: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    refused: int = 0

    def add(self, log_s: np.ndarray, low: float, high: float) -> None:
        """One interval, and the values that it predicted."""
        outside = np.maximum(low - log_s, 0) + np.maximum(log_s - high, 0)
        self.held.append(float(np.mean(outside <= 1e-9)))
        self.widths.append(high - low)
        self.scores.append(float(high - low + 2 / (1 - LEVEL) * outside.mean()))

    @property
    def text(self) -> str:
        """Coverage and its standard error, and the median width."""
        if len(self.held) < 2:
            return "-"
        error = np.std(self.held, ddof=1) / np.sqrt(len(self.held))
        return f"{np.mean(self.held):.2f} ± {error:.2f} (x {np.exp(np.median(self.widths)):.3g})"


def score_ratio(ours: Row, student: Row) -> tuple[float, float]:
    """Ratio of the mean interval scores, with its standard error."""
    if len(ours.scores) < 2:
        return float("nan"), float("nan")
    mean = np.mean(student.scores)
    differences = (np.array(ours.scores) - np.array(student.scores)) / mean
    return float(1 + differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))


def small_rows(kind: str, shape: tuple[int, int], trials: int, seed: int) -> tuple[Row, Row, Row]:
    """Predict new phases: our answer and Student's t of log maxima for N = m, and our answer for 8 m."""
    rng = np.random.default_rng(seed)
    p, m = shape
    ours, student, farther = Row(), Row(), Row()
    clock_s = CLOCK_S if "clock" in kind else 0.0
    for _ in range(trials):
        seen = _durations(KINDS[kind](p, m, rng), clock_s)
        sample = CountedDurations.from_durations(seen.ravel(), np.repeat(np.arange(p), m), clock_s)
        model = SlowestOfN.fit(sample)
        for row, tasks in ((ours, m), (farther, 8 * m)):
            new = KINDS[kind](NEW_PHASES, tasks, rng) if "neighbours" not in kind else _marginal(tasks, rng)
            truth = np.log(np.maximum(_durations(new, clock_s).max(1), 1e-9))
            found = model.tail(tasks, LEVEL)
            if found.low_s is None or found.high_s is None:
                row.refused += 1
                continue
            row.add(truth, np.log(max(found.low_s, 1e-9)), np.log(found.high_s))
            if row is ours:
                logs = np.log(seen.max(1))
                reach = stats.t.ppf((1 + LEVEL) / 2, p - 1) * logs.std(ddof=1) * np.sqrt(1 + 1 / p)
                student.add(truth, logs.mean() - reach, logs.mean() + reach)
    return ours, student, farther


def _marginal(tasks: int, rng: np.random.Generator) -> np.ndarray:
    return _calls(NEW_PHASES, tasks, rng) + 0.3 * rng.standard_normal((NEW_PHASES, 1))


def _durations(logs: np.ndarray, clock_s: float) -> np.ndarray:
    durations_s = 10e-3 * np.exp(logs)
    return durations_s if clock_s == 0 else clock_s * np.maximum(np.rint(durations_s / clock_s), 1)
