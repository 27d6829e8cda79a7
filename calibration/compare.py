"""Error rates and power of comparisons, on runs that are known to differ or not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from compared_runs import run_of_modes, run_of_phases
from scipy import stats

import ensembles as en
from calibration.page import ROOT, say, show
from calibration.workers import in_order
from ensembles.comparison.compare_samples import compare_samples
from ensembles.comparison.report import Comparison
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

Row = tuple[str, str, str, str, str]
Make = Callable[[np.random.Generator], list[list[CountedDurations]]]


def main(quick: bool = False) -> None:
    """Print one table: claim, measured, goal."""
    trials = 20 if quick else 200
    cases = [
        *((alike, number, trials) for number in range(len(ALIKE))),
        *((alike_single_runs, number, trials) for number in range(len(SINGLE))),
        *((moved, number, trials) for number in range(len(MOVED))),
        *((slower_single_runs, number, trials) for number in range(len(SLOWER_SINGLE))),
        *((real_table, name, min(trials, 120)) for name in REAL),
    ]
    rows = list(in_order(case_of, cases))
    show(rows, ("claim", "measured", "t test", "interval of the last mode: width, holds it", "goal"))
    say(
        "± is one standard error. The t test, at 5 %, is of the mean log duration of runs, or of phases if "
        "there is one run in each group. Widths are medians of high over low. Runs have 1,000 calls of two "
        "or three log-normal modes, or phases of 64 calls that are correlated with the phase before; "
        f"{trials} trials."
    )


def case_of(part: Callable[..., Row], which: int | str, trials: int) -> Row:
    """Measure one case."""
    return part(which, trials)


def modes_of(
    runs: tuple[int, int], factors: tuple[float, float] = (1.0, 1.0), own: float = 0.0, common: float = 0.0
) -> Make:
    """Make groups of runs whose modes vary from run to run, each by itself and all together."""

    def make(rng: np.random.Generator) -> list[list[CountedDurations]]:
        scales = (None, factors)
        return [
            [run_of_modes(rng, between_runs=own, common=common, factors=scale) for _ in range(n)]
            for n, scale in zip(runs, scales, strict=True)
        ]

    return make


def phases_of(runs: tuple[int, int], spread: float) -> Make:
    """Make groups of runs of 40 phases, all durations of which vary from run to run."""

    def make(rng: np.random.Generator) -> list[list[CountedDurations]]:
        return [
            [run_of_phases(rng, 40, factor=np.exp(spread * rng.standard_normal())) for _ in range(n)]
            for n in runs
        ]

    return make


def heavy_modes(runs: tuple[int, int]) -> Make:
    """Make groups of runs whose modes vary by a Student's t of 2 degrees of freedom."""

    def make(rng: np.random.Generator) -> list[list[CountedDurations]]:
        return [
            [run_of_modes(rng, between_runs=0.05 * abs(rng.standard_t(2))) for _ in range(n)] for n in runs
        ]

    return make


def t_test(groups: list[list[CountedDurations]]) -> bool:
    """Return whether Student's t test of mean log durations finds a difference."""
    edges_s = bin_edges_s()
    log_s = np.log(np.maximum(0.5 * (edges_s[:-1] + edges_s[1:]), 1e-9))

    def of_phases(runs: list[CountedDurations]) -> list[CountedDurations]:
        return [runs[0].chosen([at]) for at in range(len(runs[0].n))]

    if len(groups[0]) == len(groups[1]) == 1:
        groups = [of_phases(runs) for runs in groups]
    sides = [[float(one.counts @ log_s) / one.total for one in group] for group in groups]
    return bool(stats.ttest_ind(*sides).pvalue < 0.05)


def measure(seed: int, make: Make, trials: int, truth: float) -> tuple[list[Comparison], str, str]:
    """Compare runs many times, and return the width of the interval of the last mode and its coverage.

    It is that of the last mode that moved, if one did: modes that moved far are matched anew.
    """
    rng = np.random.default_rng([902001, seed])
    made = [make(rng) for _ in range(trials)]
    found = [compare_samples(groups) for groups in made]
    widths, inside = [], []
    for one in found:
        places = [part.effects[0] for part in one.parts if part.what == "mode place"]
        if truth != 1.0:
            places += [move.effect for move in one.moved if move.what == "mode place" and move.effect]
        if places and places[-1].low is not None:
            effect = places[-1]
            widths.append(effect.high / effect.low)
            inside.append(effect.low <= truth <= effect.high)
    held = f"× {np.median(widths):.2f}, {share(inside)}" if widths else "unknown"
    return found, share([t_test(groups) for groups in made]), held


ALIKE: dict[str, Make] = {
    "4 + 1 runs, 5 % common to a run": modes_of((4, 1), common=0.05),
    "4 + 1 runs, 5 % in each phase's run": phases_of((4, 1), 0.05),
    "2 + 1 runs, 5 % common to a run": modes_of((2, 1), common=0.05),
    "3 + 3 runs, 5 % of each mode": modes_of((3, 3), own=0.05),
    "4 + 4 runs, 5 % common to a run": modes_of((4, 4), common=0.05),
    "4 + 4 runs, 5 % of each mode": modes_of((4, 4), own=0.05),
    "5 + 5 runs, 2 % of each mode": modes_of((5, 5), own=0.02),
    "5 + 5 runs, 20 % of each mode": modes_of((5, 5), own=0.2),
    "5 + 5 runs, 20 % common to a run": modes_of((5, 5), common=0.2),
    "5 + 5 runs, heavy-tailed": heavy_modes((5, 5)),
    "1 + 1 runs, 5 % between runs": phases_of((1, 1), 0.05),
    "1 + 1 runs, 10 % between runs": phases_of((1, 1), 0.1),
}
"""Groups of runs of one program."""


def alike(number: int, trials: int) -> Row:
    """Compare groups of runs of one program."""
    name = list(ALIKE)[number]
    found, students, held = measure(number, ALIKE[name], trials, 1.0)
    goal = "different ≤ 5 %" + (", same ≥ 80 %" if name.startswith("4 + 4") else "")
    return f"alike: {name}", told(found), students, held, goal


MOVED: dict[str, tuple[Make, float, str]] = {
    "5 times slower, 4 + 1 runs": (modes_of((4, 1), (5.0, 5.0), common=0.05), 5.0, "always"),
    "mode 2 doubled, 3 + 3 runs": (modes_of((3, 3), (1.0, 2.0), own=0.05), 2.0, "always"),
    "mode 2 a fifth longer, 5 + 5 runs": (modes_of((5, 5), (1.0, 1.2), own=0.05), 1.2, "≥ 80 %"),
    "mode 2 a tenth longer, 5 + 5 runs": (modes_of((5, 5), (1.0, 1.1), own=0.05), 1.1, ""),
    "mode 2 a tenth longer, 5 + 5 runs, common factor": (
        modes_of((5, 5), (1.0, 1.1), own=0.01, common=0.05),
        1.1,
        "",
    ),
    "all a tenth shorter, as the margin just allows, 4 + 4 runs": (
        modes_of((4, 4), (0.9, 0.9), common=0.05),
        0.9,
        "same ≤ 10 %",
    ),
    "all a fifth longer, 4 + 4 runs": (modes_of((4, 4), (1.2, 1.2), common=0.05), 1.2, "same ≤ 10 %"),
}
"""Groups of runs of which a mode, or all, moved; by how much the last mode did; and the goal."""


def moved(number: int, trials: int) -> Row:
    """Compare groups of runs of which a mode, or all, moved."""
    name = list(MOVED)[number]
    make, truth, goal = MOVED[name]
    found, students, held = measure(100 + number, make, trials, truth)
    right = [one.direction == ("slower" if truth > 1 else "faster") for one in found if one.moved]
    direction = f"; direction right {share(right)}" if right else ""
    return f"{name}, 5 % between runs", told(found) + direction, students, held, goal


SINGLE = (
    (8, 0.95, False),
    (16, 0.0, False),
    (16, 0.8, True),
    (40, 0.0, True),
    (40, 0.5, False),
    (160, 0.0, False),
    (160, 0.5, True),
    (160, 0.8, False),
    (160, 0.95, False),
)
"""Phases of a run, their correlation, and whether their tails are heavy."""


def alike_single_runs(number: int, trials: int) -> Row:
    """Compare single runs whose phases are slow or fast, and correlated in time."""
    phases, memory, heavy = SINGLE[number]
    rng = np.random.default_rng([902002, phases, int(100 * memory)])
    made = [
        [[run_of_phases(rng, phases, memory=memory, heavy=heavy)] for _ in range(2)] for _ in range(trials)
    ]
    found = [compare_samples(groups) for groups in made]
    name = f"alike: one run per group, {phases} phases, correlation {memory:g}" + ", heavy tails" * heavy
    return name, told(found), share([t_test(groups) for groups in made]), "", "different ≤ 5 %"


SLOWER_SINGLE = ((24, 0.0), (40, 0.0), (160, 0.5), (160, 0.8))


def slower_single_runs(number: int, trials: int) -> Row:
    """Compare single runs of which one takes twice as long."""
    phases, memory = SLOWER_SINGLE[number]
    rng = np.random.default_rng([902006, phases, int(100 * memory)])
    made = [
        [[run_of_phases(rng, phases, memory=memory, factor=f)] for f in (1.0, 2.0)] for _ in range(trials)
    ]
    found = [compare_samples(groups) for groups in made]
    name = f"twice as long, one run per group, {phases} phases, correlation {memory:g}"
    return name, told(found), share([t_test(groups) for groups in made]), "", ""


REAL = (
    "VPIC write 512 KiB",
    "VPIC read 512 KiB",
    "VPIC write 54 KiB",
    "local_bufwr256k_6runs, 3 + 3",
    "local_bufwr256k_6runs, 1 + 1",
    "local_dirwr64k_6runs, 3 + 3",
    "local_dirwr64k_6runs, 1 + 1",
)


def real_table(name: str, trials: int) -> Row:
    """Compare random halves of a real run's phases, or repetitions of a benchmark."""
    folder = Path(os.environ.get("ENSIO_DATA") or ROOT.parent / "shared" / "data") / "tables"
    if not folder.is_dir():
        return f"{name}: not measured, since ENSIO_DATA names no folder with tables", "", "", "", ""
    if name.startswith("VPIC"):
        return _halves_of_vpic(folder, name, trials)
    table, _, design = name.partition(", ")
    runs = _repetitions(folder / f"{table}.npz")
    if design == "3 + 3":
        found = [en.compare(runs[:3], runs[3:]), en.compare(runs[::2], runs[1::2])]
        return f"{table}: 3 against 3 repetitions, two ways", told(found), "", "", "never different"
    pairs = [en.compare(a, b) for i, a in enumerate(runs) for b in runs[:i]]
    return f"{table}: pairs of single repetitions", told(pairs), "", "", "fewer than 15 of 15 different"


def _halves_of_vpic(folder: Path, name: str, trials: int) -> Row:
    with np.load(folder / "vpic_hdf5_summit_gpfs_192.npz") as table:
        table = dict(table)
    op, size = int("write" in name), 55296 if "54 KiB" in name else 1 << 19
    mine = (table["op"] == op) & (table["length"] == size) & (table["layer"] == 0)
    duration_s = (table["end"] - table["start"])[mine]
    phase = ordinals(table["rank"][mine], table["start"][mine])
    rng = np.random.default_rng([902004, op, size])
    found = []
    for _ in range(trials):
        side = rng.permutation(phase.max() + 1) % 2
        sides = [side[phase] == number for number in (0, 1)]
        found.append(en.compare(*(en.Ensemble(duration_s[here], phase=phase[here]) for here in sides)))
    return f"{name}: {phase.max() + 1} phases dealt out at random", told(found), "", "", "different ≤ 5 %"


def _repetitions(path: Path) -> list[en.Ensemble]:
    with np.load(path) as table:
        table = dict(table)
    runs = []
    for number in np.unique(table["run"]):
        mine = table["run"] == number
        columns = {"rank": table["rank"][mine], "start_ns": np.rint(table["start"][mine] * 1e9)}
        runs.append(en.Ensemble((table["end"] - table["start"])[mine], **columns))
    return runs


def ordinals(rank: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the number of each call among those of its rank, from 0."""
    order = np.lexsort((start, rank))
    _, count = np.unique(rank, return_counts=True)
    ordinal = np.empty(len(order), np.int64)
    ordinal[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    return ordinal


def told(found: list) -> str:
    """Return the share of each verdict."""
    n = len(found)
    if n < 20:
        return ", ".join(
            f"{verdict} {sum(one.verdict == verdict for one in found)} of {n}" for verdict in VERDICTS
        )
    return ", ".join(f"{verdict} {share([one.verdict == verdict for one in found])}" for verdict in VERDICTS)


def share(found: Sequence[bool]) -> str:
    """Return the share of the trials in which something was found, with its standard error."""
    n, mean = len(found), float(np.mean(found))
    return f"{mean:.1%} ± {np.sqrt(max(mean * (1 - mean), 0.25 / n) / n):.1%}"


VERDICTS = ("different", "same", "inconclusive")
