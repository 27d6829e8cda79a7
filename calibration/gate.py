"""False alarms and power of the gate ``ensio compare --fail-on slower=10%``, on simulated runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.comparison.call_groups import ComparedCalls
from ensembles.comparison.compare import ReadRun, compare_read_runs
from ensembles.comparison.gate import gate
from ensembles.comparison.totals import ComparedSums
from ensembles.statistics.samples.counted_durations import CountedDurations

KINDS = {("posix", "write"): (60, 6e-3), ("posix", "read"): (60, 4e-3)}
"""Calls a run, and their typical duration in seconds."""

SIZES = ((1, 1), (2, 1), (3, 1), (4, 1), (8, 1), (2, 2), (3, 3), (5, 5))
SPREADS = (0.05, 0.1, 0.2, 0.35)
FACTORS = (1.0, 1.5, 2.0)
FAIL_ON = 1.1
BUSY = 0.1
"""Share of the runs that a busy machine slows, by a factor between 1.3 and 1.8."""


@dataclass(frozen=True)
class Runs:
    """How runs vary.

    Attributes
    ----------
    spread : float
        Standard deviation of the log of what is common to a run; each kind of calls varies by half of it more.
    busy : float
        Share of the runs that a busy machine slows.
    """

    spread: float
    busy: float = 0.0


def main(quick: bool = False) -> None:
    """Print one table for runs that vary evenly, and one for a machine that is busy now and then."""
    trials = 10 if quick else 200
    for title, chosen in (
        ("runs vary by", [Runs(spread) for spread in SPREADS]),
        ("one run of ten is slowed, others vary by", [Runs(spread, BUSY) for spread in SPREADS[:2]]),
    ):
        cases = [
            (number, sizes, runs, factor, trials)
            for number, (sizes, runs) in enumerate((sizes, runs) for sizes in SIZES for runs in chosen)
            for factor in FACTORS
        ]
        failed = list(in_order(share_that_fails, cases))
        rows = []
        for at in range(0, len(cases), len(FACTORS)):
            _, sizes, runs, _, _ = cases[at]
            cells = [
                f"{share:.1%} ± {error:.1%}"
                for share, error in map(_with_error, failed[at : at + 3], [trials] * 3)
            ]
            rows.append((f"{sizes[0]} + {sizes[1]}", f"{runs.spread:.0%}", *cells))
        headers = ("runs", title, "alike: fails", "1.5 times as long: fails", "twice as long: fails")
        show(rows, headers)
    say(
        f"`--fail-on slower=10%`, {trials} trials a cell; ± is one standard error. Runs of one task have "
        "60 writes and 60 reads with 60 and 40 % of the time in I/O. Variation is the standard deviation "
        "of the log of a factor that is common to a run; each kind of calls varies by half of it more."
    )


def share_that_fails(seed: int, sizes: tuple[int, int], runs: Runs, factor: float, trials: int) -> float:
    """Return how often the gate fails for groups of runs of which the second takes `factor` times as long."""
    rng = np.random.default_rng([2101, seed, round(100 * factor)])
    failed = 0
    for _ in range(trials):
        groups = [
            [made_run(rng, runs, by) for _ in range(n)] for n, by in zip(sizes, (1.0, factor), strict=True)
        ]
        failed += bool(gate(compare_read_runs(groups, names=["a", "b"]), FAIL_ON).failed)
    return failed / trials


def made_run(rng: np.random.Generator, runs: Runs, factor: float) -> ReadRun:
    """Make a run of which only durations and totals are known."""
    factor *= np.exp(runs.spread * rng.standard_normal())
    if rng.random() < runs.busy:
        factor *= rng.uniform(1.3, 1.8)
    samples, times_s = {}, {}
    for key, (calls, typical_s) in KINDS.items():
        here_s = typical_s * factor * np.exp(runs.spread / 2 * rng.standard_normal())
        durations_s = here_s * rng.lognormal(0, 0.3, calls)
        samples[key] = CountedDurations.from_durations(durations_s)
        times_s[key] = float(durations_s.sum())
    io_s = sum(times_s.values())
    totals = {"tasks": 1.0, "bytes_read": 0.0, "bytes_written": 1e8, "io_time_s": io_s, "span_s": 0.1 + io_s}
    return ReadRun("run", ComparedCalls(times_s, samples), ComparedSums(totals, {}), [])


def _with_error(share: float, trials: int) -> tuple[float, float]:
    return share, float(np.sqrt(max(share * (1 - share), 0.25 / trials) / trials))
