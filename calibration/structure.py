"""Error rates of phases, trends and plateaus, on simulated programs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import kendalltau
from simulated import NUMBERS, Program

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.structure.ordinals.trend import fit_trend
from ensembles.structure.phases.detect import find_phases

MADBENCH_S = [15, 15, 15, 30, 60, 120, 250, 500] + [15] * 8
MILD_S = [15, 15, 15, 18, 21, 25, 30, 36] + [15] * 8


def a_program(seed: int, recorded: bool) -> bool:
    """Return whether every read and write of a random program is in its true phase."""
    random = np.random.default_rng(seed)
    ranks = int(random.choice([2, 4, 8, 32, 128, 512]))
    program = Program(ranks, seed)
    calls = int(random.integers(1, 11))
    spread = float(random.choice([0.1, 0.5, 1.0]))
    think_ns = int(random.choice([500, 5_000, 50_000]))
    for number in range(int(random.integers(2, 40))):
        who = np.arange(ranks)
        if ranks >= 32 and random.random() < 0.2:  # some skip a phase
            who = np.setdiff1d(who, random.integers(0, ranks, ranks // 32))
        program.io("pwrite" if number % 2 else "pread", calls, who, spread=spread, think_ns=think_ns)
        if recorded and ranks > 2 and random.random() < 0.3:
            program.meet(who=np.arange(ranks // 2), ends_phase=False)
        program.meet(recorded=recorded, late_ns=int(random.choice([5_000, 500_000])))
        if random.random() < 0.3:
            program.compute(float(10 ** random.uniform(5, 9)))
    events, truth = program.recorded()
    io = np.isin(events.call, [NUMBERS["pread"], NUMBERS["pwrite"]])
    found = find_phases(events).phase_index(events)[io]
    return bool(np.array_equal(np.unique(found, return_inverse=True)[1] + 1, truth[io]))


def a_trend(
    typical_s: list[float], seed: int, of_ordinal: float, correlation: float = 0.0
) -> tuple[bool, int | None, int | None, bool]:
    """Return the trend that is found in 256 ranks with these durations, and whether Kendall's test finds one.

    All ranks share an effect of each ordinal, whose neighbours are correlated.
    """
    random = np.random.default_rng(seed)
    p = len(typical_s)
    logs = np.log(np.array(typical_s, float)) + random.normal(0, 0.3, (256, p))
    logs += of_ordinal * slowly_varying(random, p, correlation)
    ordinal = np.arange(1, p + 1)
    medians = np.median(logs, axis=0)
    trend, kendall = fit_trend(ordinal, ordinal, medians), kendalltau(ordinal, medians)
    rises = kendall.statistic > 0 and kendall.pvalue < 0.05
    return trend.worsening, trend.from_, trend.to, bool(rises)


def slowly_varying(random: np.random.Generator, length: int, correlation: float) -> np.ndarray:
    """Draw a stationary autoregression of first order, of standard deviation 1, or a random walk."""
    series = np.asarray(random.normal(0, 1, length))
    if correlation == 1.0:
        return np.cumsum(series)
    for place in range(1, length):
        series[place] *= np.sqrt(1 - correlation**2)
        series[place] += correlation * series[place - 1]
    return series


def share(found: list[bool]) -> str:
    """Return the share of the trials in which something was found, with its standard error."""
    n, mean = len(found), float(np.mean(found))
    return f"{mean:.1%} ± {np.sqrt(max(mean * (1 - mean), 0.25 / n) / n):.1%}"


def main(quick: bool = False) -> None:
    """Print the tables of phases and trends."""
    times = 20 if quick else 200
    cases = [(seed, recorded) for recorded in (True, False) for seed in range(910_000, 910_000 + times)]
    right = list(in_order(a_program, cases))
    rows = [
        [f"every call in its true phase, {what}", f"{share(found)} of {times}", goal]
        for what, goal, found in (
            ("with barriers recorded", "100 %", right[:times]),
            ("from the I/O alone", "≥ 95 %", right[times:]),
        )
    ]
    for what, typical_s in (("MADbench's reads", MADBENCH_S), ("the same, a fifth more each", MILD_S)):
        right = [a_trend(typical_s, 900_000 + seed, 0.02)[:3] == (True, 4, 8) for seed in range(times)]
        rows.append([f"{what} worsen from 4 to 8", f"{share(right)} of {times}", "≥ 90 %"])
    show(rows, ("structure", "measured", "goal"))
    trends(50 if quick else 400, 50 if quick else 200)


ORDINALS = (4, 5, 8, 16, 24, 48, 64)
EFFECTS = ((0.3, 0.0), (0.3, 0.5), (0.3, 0.8), (0.3, 0.95), (0.3, 1.0))
"""Standard deviation of what ranks share at an ordinal, and the correlation of neighbours; 1: a walk."""


def alarms(p: int, of_ordinal: float, correlation: float, times: int) -> str:
    """Return how often a trend is found in ordinals without one."""
    seeds = range(920_000, 920_000 + times)
    return both([a_trend([1.0] * p, seed, of_ordinal, correlation) for seed in seeds])


def found_with(typical_s: list[float], common: float, times: int) -> str:
    """Return how often a trend is found where there is one."""
    return both([a_trend(typical_s, 930_000 + seed, common) for seed in range(times)])


def both(found: list[tuple[bool, int | None, int | None, bool]]) -> str:
    """Return how often a trend is found, and how often by Kendall's test."""
    return f"{share([one[0] for one in found])} · {np.mean([one[3] for one in found]):.0%}"


def trends(times: int, times_of_power: int) -> None:
    """Print how often a trend is found in ordinals whose neighbours are correlated."""
    say(
        f"Alarms without a trend, {times} trials each: all ranks share an effect of each ordinal with the "
        "standard deviation σ of log duration, and neighbours are correlated. The goal is 5 %, and 6 % at a "
        "correlation of 0.8. After the dot: the test of Mann and Kendall of the medians, at 5 % and rising."
    )
    cells = list(in_order(alarms, [(p, *effect, times) for p in ORDINALS for effect in EFFECTS]))
    width = len(EFFECTS)
    show(
        [[p, *cells[width * row : width * (row + 1)]] for row, p in enumerate(ORDINALS)],
        ("ordinals", *(f"σ = {sigma}, correlation {correlation}" for sigma, correlation in EFFECTS)),
    )
    say(f"Trends that are found, {times_of_power} trials each, without and with common effects.")
    shapes: dict[str, Callable[[int], np.ndarray]] = {
        "a fifth more at the end": lambda p: np.linspace(1, 1.2, p),
        "twice at the end": lambda p: np.linspace(1, 2, p),
        "twice at the end, in the second half": lambda p: np.interp(np.arange(p), [p / 2, p - 1], [1, 2]),
        "the last three times as slow (no trend)": lambda p: np.append(np.ones(p - 1), 3),
    }
    named = [(p, what) for p in (4, 8, 16, 64) for what in shapes]
    cases = [(shapes[what](p).tolist(), common, times_of_power) for p, what in named for common in (0.0, 0.1)]
    cells = list(in_order(found_with, cases))
    rows = [[f"{p} ordinals, {what}", *cells[2 * row : 2 * row + 2]] for row, (p, what) in enumerate(named)]
    show(rows, ("trend", "found, no common effect", "found, common effects of σ = 0.1"))
