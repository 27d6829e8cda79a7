"""Coverage of the prediction interval of the slowest of N calls.

``python -m calibration.tail [quick]``, or ``./dev calibrate``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from calibration.cases.drifts import DRIFTS, later_half
from calibration.cases.many_calls import Chances, many_calls_coverage
from calibration.cases.tail_cases import (
    INDEPENDENT,
    WITHIN,
    Count,
    Phased,
    independent_coverage,
    phased_coverage,
)
from calibration.cases.tail_tables import TABLES, ensembles_of, folder
from calibration.page import say, show
from ensembles.ensemble.from_run import IN_MEMORY
from ensembles.statistics.extremes.backtest import run_backtest
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.samples.counted_durations import CountedDurations

RATIOS = (0.1, 1.0, 10.0, 100.0)
STEPS = (0.25, 1.0, 4.0, 16.0)
MANY_CALLS = (100_000, 1_000_000, 100_000_000)
_MANY = ("exponential", "log-normal, sd 1", "Pareto, alpha 3", "2 % slow, log-normal x 4")
SEED = 20100604
_HEADER = ("claim", "measured", "low, high", "median width", "refused", "goal", "met")


def main(quick: bool = False) -> None:
    """Print the tables."""
    trials, sizes = (40, (1000,)) if quick else (300, (1000, 10000))
    error = 1.64 * (0.09 / trials) ** 0.5
    say(
        f"Slowest of N, intervals at 90 %, {trials} trials a line. "
        f"The 90 % confidence interval of a share of 0.9 is then ± {error:.3f}."
    )
    rows = independent_rows(trials, sizes, tuple(INDEPENDENT))
    if not quick:
        rows += many_calls_rows(2 * trials)
    rows += phased_rows(trials, quick)
    drift_rows(20 if quick else 100)
    real_rows(quick)
    met = sum(row[-1] == "yes" for row in rows)
    say(f"{met} of {len(rows)} lines are within their goal.")


def independent_rows(trials: int, sizes: tuple[int, ...], names: tuple[str, ...]) -> list[list[str]]:
    """Measure coverage for independent calls, N from n/10 to 100 n."""
    rows = []
    for calls in sizes:
        for name in names:
            counts = independent_coverage(INDEPENDENT[name], calls, RATIOS, trials, SEED + calls)
            rows += _shown(
                [
                    _row(f"{name}; n = {calls:,}, N = {ratio:g} n", count, 0.87, 0.93)
                    for ratio, count in zip(RATIOS, counts, strict=True)
                ]
            )
    return rows


def many_calls_rows(trials: int) -> list[list[str]]:
    """Measure coverage for very many calls, drawn as counts and the longest calls."""
    rows = []
    for calls in MANY_CALLS:
        for exactly, known in ((True, "longest calls"), (False, "bins")):
            if exactly and calls > IN_MEMORY:
                continue
            for name in _MANY:
                found = many_calls_coverage(INDEPENDENT[name], calls, RATIOS, trials, SEED, exactly)
                rows += _shown(
                    [
                        _row(f"{name}; n = {calls:,} by their {known}, N = {ratio:g} n", one, 0.87, 0.93)
                        for ratio, one in zip(RATIOS, found, strict=True)
                    ]
                )
                say(f"Standard errors: {', '.join(f'{one.error:.3f}' for one in found)}.")
    return rows


def phased_rows(trials: int, quick: bool) -> list[list[str]]:
    """Measure coverage for a new phase with as many calls as past ones, or other N."""
    rows = []
    shapes = ((20, 64), (60, 256)) if quick else ((20, 64), (20, 1024), (60, 256), (200, 64))
    for within in WITHIN:
        for phases, calls in shapes:
            slow = 0.1 if calls != 256 else 0.0
            truth = Phased(within, phases, calls, location=0.3 if slow else 0.1, spread=0.25, slow=slow)
            counts = phased_coverage(truth, STEPS, trials, SEED + phases)
            rows += _shown(
                [
                    _row(f"{within}; {phases} phases of {calls:,}, N = {step:g} x", count, 0.85, 0.95)
                    for step, count in zip(STEPS, counts, strict=True)
                ]
            )
    return rows


def drift_rows(trials: int) -> None:
    """Measure refusals and coverage for the later half of a run that drifts."""
    say("Later half of a run from its first half:")
    rows = []
    for phases in (40, 160):
        for name in DRIFTS:
            found = later_half(name, phases, trials, SEED + phases)
            answered = found[~np.isnan(found[:, 1])]
            held = (answered[:, 1] >= 0.8) & (answered[:, 1] <= 0.96)
            rows.append(
                [
                    f"{name}; {phases} phases of 48",
                    f"{np.nanmean(found[:, 0]):.2f}",
                    f"{1 - len(answered) / trials:.2f}",
                    f"{answered[:, 1].mean():.2f}" if len(answered) else "-",
                    f"{held.mean():.2f}" if len(answered) else "-",
                ]
            )
    header = ("run", "covered, not asked whether settled", "refused", "covered", "of these in 0.80 to 0.96")
    show(rows, header)


def real_rows(quick: bool) -> None:
    """Measure coverage on real ensembles: phases, later phases and ranks left out."""
    if not folder().is_dir():
        say("Real tables: not measured, since ENSIO_DATA names no folder with tables.")
        return
    rows: list[list[str]] = []
    verdicts: dict[str, list[str]] = {}
    for what, calls in _real_ensembles(quick):
        found = run_backtest(CountedDurations.from_durations(calls.durations_s, calls.phase), calls=calls)
        row = [what]
        for kind in found.kinds:
            if kind.coverage is None or kind.width is None or kind.refused > kind.trials:
                verdict, shown = "refused", "refused"
            else:
                shown = f"{kind.coverage:.2f} (x {kind.width:.3g})"
                share = round(kind.coverage, 2)
                verdict = "under" if share < 0.8 else "over" if share > 0.96 else "within"
            row.append(shown)
            verdicts.setdefault(kind.kind, []).append(verdict)
        rows.append(row)
    show(rows, ("real ensemble", "phases", "later phases", "ranks"))
    for kind, told in verdicts.items():
        parts = ", ".join(f"{told.count(word)} {word}" for word in ("within", "over", "under", "refused"))
        say(f"{kind} left out, goal 0.80 to 0.96: {parts}.")


def _real_ensembles(quick: bool) -> Iterator[tuple[str, CallAttributes]]:
    for name in TABLES[:1] if quick else TABLES:
        yield from ensembles_of(name)


def _row(claim: str, count: Count | Chances, low: float, high: float) -> list[str]:
    met = "yes" if count.trials and low <= count.coverage <= high else "no"
    sides = f"{count.below / max(count.trials, 1):.3f}, {count.above / max(count.trials, 1):.3f}"
    measured = f"{count.coverage:.3f}" if count.trials else "-"
    return [claim, measured, sides, f"x {count.width:.3g}", str(count.refused), f"{low} to {high}", met]


def _shown(rows: list[list[str]]) -> list[list[str]]:
    """Print a part of the table as soon as it is complete."""
    show(rows, _HEADER)
    return rows


if __name__ == "__main__":
    main("quick" in sys.argv[1:])
