"""Coverage of the prediction interval of the slowest of N calls."""

from __future__ import annotations

import itertools

import numpy as np

from calibration.cases.drifts import DRIFTS, next_phases, oracle_width
from calibration.cases.small_cases import KINDS, NEW_PHASES, SHAPES, score_ratio, small_rows
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
from calibration.workers import in_order
from ensembles.statistics.extremes.backtest import Backtest, run_backtest
from ensembles.statistics.samples.counted_durations import CountedDurations

RATIOS = (0.1, 1.0, 10.0, 100.0)
STEPS = (0.25, 1.0, 4.0, 16.0)
SEED = 20100604


def main(quick: bool = False) -> None:
    """Print the tables."""
    trials = 20 if quick else 300
    say(
        "Coverage of intervals at 90 %, with the median width (high / low) in brackets. Refused: no interval."
    )
    independent_rows(trials, (1000,) if quick else (100, 1000))
    small_shape_rows(8 if quick else 80)
    phased_rows(8 if quick else 60)
    drift_rows(8 if quick else 60)
    real_rows(quick)


def independent_rows(trials: int, sizes: tuple[int, ...]) -> None:
    """Measure coverage for independent calls, N from n/10 to 100 n."""
    for calls in sizes:
        say(
            f"Independent calls, n = {calls:,}, {trials} trials: the standard error of a share of 0.9 is "
            f"{(0.09 / trials) ** 0.5:.3f}."
        )
        cases = [(truth, calls, RATIOS, trials, SEED + calls) for truth in INDEPENDENT.values()]
        rows = [
            [name, *(_cell(count) for count in counts)]
            for name, counts in zip(INDEPENDENT, in_order(independent_coverage, cases), strict=True)
        ]
        show(rows, ("calls", *(f"N = {ratio:g} n" for ratio in RATIOS)))


def small_shape_rows(trials: int) -> None:
    """Measure small shapes, and compare the interval score with that of Student's t of log maxima."""
    say(
        f"Small shapes, {trials} trials of {NEW_PHASES} new phases each, with standard errors. N is the "
        "calls of a phase, and 8 times as many. The score is the mean interval score of the logarithm, "
        "divided by that of Student's t interval of log phase maxima in the same trials: below 1, ours is "
        "better."
    )
    rows, worse = [], 0
    cases = [(kind, shape, trials, SEED) for kind in KINDS for shape in SHAPES]
    for (kind, shape, *_), (ours, student, farther) in zip(cases, in_order(small_rows, cases), strict=True):
        ratio, error = score_ratio(ours, student)
        worse += ratio - 2 * error > 1
        rows.append(
            [
                kind,
                f"{shape[0]} x {shape[1]}",
                ours.text,
                student.text,
                f"{ratio:.2f} ± {error:.2f}" if np.isfinite(ratio) else "-",
                f"{ours.refused / trials:.0%}",
                farther.text,
                f"{farther.refused / trials:.0%}",
            ]
        )
    header = ("phases", "shape", "ours", "Student's t", "score", "refused", "ours, 8 x", "refused")
    show(rows, header)
    say(f"In {worse} of {len(rows)} rows the score is over two standard errors above that of Student's t.")


def phased_rows(trials: int) -> None:
    """Measure coverage for new phases with as many calls as past ones, or other N."""
    say(f"Phases with random location and spread, {trials} trials of 20 new phases each.")
    cases = []
    for within in WITHIN:
        for phases, calls in ((20, 64), (60, 256)):
            slow = 0.1 if calls != 256 else 0.0
            truth = Phased(within, phases, calls, location=0.3 if slow else 0.1, spread=0.25, slow=slow)
            cases.append((truth, STEPS, trials, SEED + phases))
    rows = [
        [truth.within, f"{truth.phases} x {truth.calls}", *(_cell(count) for count in counts)]
        for (truth, *_), counts in zip(cases, in_order(phased_coverage, cases), strict=True)
    ]
    show(rows, ("calls within a phase", "shape", *(f"N = {step:g} x" for step in STEPS)))


def drift_rows(trials: int) -> None:
    """Measure prequential coverage and width of the next phase of simulated runs."""
    say(
        f"The next phase of {trials} simulated runs a row, each from the phases before it: prequential "
        "coverage, and the median width beside that of an oracle that knows the process and its jumps."
    )
    rows = []
    cases = [(name, phases, trials, SEED + phases) for phases in (40, 160) for name in DRIFTS]
    for (name, phases, *_), found in zip(cases, in_order(next_phases, cases), strict=True):
        coverage = np.array([one.coverage for one in found])
        width = float(np.exp(np.mean([np.log(one.width) for one in found])))
        oracle = oracle_width(name, phases)
        rows.append(
            [
                name,
                phases,
                f"{coverage.mean():.3f} ± {coverage.std(ddof=1) / trials**0.5:.3f}",
                f"{np.mean((coverage >= 0.8) & (coverage <= 0.96)):.2f}",
                f"x {width:.2f}",
                f"x {oracle:.2f}",
                f"{width / oracle:.2f}",
            ]
        )
    header = ("run", "phases", "coverage", "runs in 0.80 to 0.96", "width", "oracle's", "ratio")
    show(rows, header)


def real_rows(quick: bool) -> None:
    """Measure coverage on real ensembles: phases and ranks left out, and the next phase."""
    if not folder().is_dir():
        say("Real tables: not measured, since ENSIO_DATA names no folder with tables.")
        return
    rows: list[list[str]] = []
    verdicts: dict[str, list[str]] = {}
    widths: dict[str, list[float]] = {}
    tables = [(name,) for name in (TABLES[:1] if quick else TABLES)]
    for what, found in itertools.chain.from_iterable(in_order(backtests_of, tables)):
        row = [what]
        for kind in found.kinds:
            if kind.coverage is None or kind.width is None or kind.refused > kind.trials:
                verdict, shown = "refused", "refused"
            else:
                shown = f"{kind.coverage:.2f} (x {kind.width:.3g})"
                share = round(kind.coverage, 2)
                verdict = "under" if share < 0.8 else "over" if share > 0.96 else "within"
            widths.setdefault(kind.kind, []).extend([] if verdict == "refused" else [kind.width])
            row.append(shown)
            verdicts.setdefault(kind.kind, []).append(verdict)
        rows.append(row)
    show(rows, ("real ensemble", "phases", "next phase", "ranks"))
    for kind, told in verdicts.items():
        wide = float(np.exp(np.median(np.log(widths[kind])))) if widths[kind] else float("nan")
        parts = ", ".join(f"{told.count(word)} {word}" for word in ("within", "over", "under", "refused"))
        say(f"{kind}, goal 0.80 to 0.96: {parts}; median width x {wide:.3g}.")


def backtests_of(name: str) -> list[tuple[str, Backtest]]:
    """Return the backtests of the ensembles of one table."""
    return [
        (what, run_backtest(CountedDurations.from_durations(calls.durations_s, calls.phase), calls=calls))
        for what, calls in ensembles_of(name)
    ]


def _cell(count: Count) -> str:
    share = count.refused / max(count.trials + count.refused, 1)
    refused = f", {share:.0%} refused" if count.refused else ""
    return f"{count.coverage:.2f} (x {count.width:.3g}{refused})" if count.trials else "refused"
