"""Whether the slowest of N falls into its interval as often as it should: claim, measured, goal.

``python -m calibration.tail [quick]``, or ``./dev calibrate``."""

from __future__ import annotations

import sys

from tabulate import tabulate

from calibration.cases.tail_cases import (
    INDEPENDENT,
    WITHIN,
    Count,
    Phased,
    independent_coverage,
    phased_coverage,
)

RATIOS = (0.1, 1.0, 10.0, 100.0)
STEPS = (0.25, 1.0, 4.0, 16.0)
SEED = 20100604
_HEADER = ("claim", "measured", "low, high", "median width", "refused", "goal", "met")


def main(quick: bool = False) -> None:
    """Print the table."""
    trials, sizes = (40, (1000,)) if quick else (300, (1000, 10000))
    print(
        f"Slowest of N, intervals at 90 %, {trials} trials a line; a share of 0.9 is then known to", end=" "
    )
    print(f"{1.64 * (0.09 / trials) ** 0.5:.3f} (90 %)", flush=True)
    rows = independent_rows(trials, sizes)
    rows += phased_rows(trials, quick)
    met = sum(row[-1] == "yes" for row in rows)
    print(f"{met} of {len(rows)} within their goal", flush=True)


def independent_rows(trials: int, sizes: tuple[int, ...]) -> list[list[str]]:
    """Independent calls: n/10 to 100 n."""
    rows = []
    for calls in sizes:
        for name, truth in INDEPENDENT.items():
            counts = independent_coverage(truth, calls, RATIOS, trials, SEED + calls)
            rows += _shown(
                [
                    _row(f"{name}; n = {calls:,}, N = {ratio:g} n", count, 0.87, 0.93)
                    for ratio, count in zip(RATIOS, counts, strict=True)
                ]
            )
    return rows


def phased_rows(trials: int, quick: bool) -> list[list[str]]:
    """A new phase, with as many calls as those seen, fewer, or more."""
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


def _row(claim: str, count: Count, low: float, high: float) -> list[str]:
    met = "yes" if count.trials and low <= count.coverage <= high else "no"
    sides = f"{count.below / max(count.trials, 1):.3f}, {count.above / max(count.trials, 1):.3f}"
    measured = f"{count.coverage:.3f}" if count.trials else "-"
    return [claim, measured, sides, f"x {count.width:.3g}", str(count.refused), f"{low} to {high}", met]


def _shown(rows: list[list[str]]) -> list[list[str]]:
    """A part of the table, printed as soon as it is there."""
    print(tabulate(rows, _HEADER, disable_numparse=True), flush=True)
    return rows


if __name__ == "__main__":
    main("quick" in sys.argv[1:])
