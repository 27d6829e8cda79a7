"""False alarms and power of the gate ``ensio compare --fail-on slower=10%``, on simulated runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.page import say, show
from calibration.workers import in_order
from ensembles.comparison.compare import ReadRun, compare_read_runs
from ensembles.comparison.report import gate
from ensembles.comparison.times import ComparedSums
from ensembles.comparison.units import ComparedCalls
from ensembles.statistics.samples.counted_durations import CountedDurations

KINDS = {("posix", "write"): (60, 6e-3), ("posix", "read"): (60, 4e-3)}
"""Calls a run, and their typical duration in seconds."""

SIZES = ((1, 1), (2, 1), (4, 1), (2, 2), (3, 3), (5, 5))
SPREADS = (0.05, 0.1, 0.2, 0.35)
FACTORS = (1.0, 1.5, 2.0)
FAIL_ON = 1.1
BUSY = 0.1
"""Share of the runs that a busy machine slows, by a factor between 1.3 and 1.8."""


@dataclass(frozen=True)
class Runs:
    """How runs vary."""

    # Standard deviation of the log of what is common to a run; kinds of calls vary by half of it more
    spread: float
    busy: float = 0.0  # Share of the runs that a busy machine slows


def main(quick: bool = False) -> None:
    """Print a table: how often the gate fails for runs that are alike, and for runs that take longer."""
    trials = dict(zip(FACTORS, (10, 5, 5) if quick else (300, 100, 100), strict=True))
    kinds = [(sizes, runs) for runs in [*map(Runs, SPREADS), Runs(0.1, BUSY)] for sizes in SIZES]
    cases = [
        (number, sizes, runs, factor, trials[factor])
        for number, (sizes, runs) in enumerate(kinds)
        for factor in FACTORS
    ]
    failed = iter(in_order(share_that_fails, cases))
    rows = []
    for sizes, runs in kinds:
        cells = [_with_error(next(failed), trials[factor]) for factor in FACTORS]
        busy = f", {runs.busy:.0%} of them slowed" if runs.busy else ""
        rows.append((f"{sizes[0]} + {sizes[1]}", f"{runs.spread:.0%}{busy}", *cells))
    show(rows, ("runs", "vary by", "alike: fails", "1.5 times as long: fails", "twice as long: fails"))
    say(
        f"`--fail-on slower=10%`, {trials[1.0]} trials of runs alike and {trials[2.0]} of others; ± is one "
        "standard error. Runs of one task have 60 writes and 60 reads with 60 and 40 % of the time in I/O. "
        "Variation is the standard deviation of the log of a factor that is common to a run; each kind of "
        "calls varies by half of it more. A slowed run takes 1.3 to 1.8 times as long."
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


def _with_error(share: float, trials: int) -> str:
    return f"{share:.1%} ± {np.sqrt(max(share * (1 - share), 0.25 / trials) / trials):.1%}"
