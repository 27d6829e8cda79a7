"""Error rates and power of comparisons, on runs that are known to differ or not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import ensembles as en
from calibration.page import show
from ensembles.comparison.compare_samples import compare_samples
from ensembles.statistics.samples.counted_durations import CountedDurations

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "comparison"))

from compared_runs import THREE_MODES, TWO_MODES, run_of_modes, run_of_phases  # noqa: E402

Row = tuple[str, str, str]


def main(quick: bool = False) -> None:
    """Print one table: claim, measured, goal."""
    trials = 40 if quick else 400
    rows: list[Row] = []
    for part in (alike_groups, alike_single_runs, slower_modes, slower_single_runs, real_tables):
        rows += part(trials)
    rows += speed()
    show(rows, ("claim", "measured", "goal"))


def alike_groups(trials: int) -> list[Row]:
    """Compare groups of runs of one program.

    The location varies from run to run, and calls within a run are dependent.
    """
    rows = []

    def modes(spread, heavy=False):
        def run(rng):
            scale = spread * (abs(rng.standard_t(2)) if heavy else 1.0)
            return run_of_modes(rng, between_runs=scale, calls=1000)

        return run

    def phases(rng):
        return run_of_phases(rng, 16, memory=0.8, heavy=True, factor=np.exp(0.1 * rng.standard_normal()))

    cases = [
        ("5 + 5 runs, 2 % between runs", modes(0.02), 5, 5),
        ("5 + 5 runs, 20 % between runs", modes(0.2), 5, 5),
        ("5 + 5 runs, heavy-tailed between runs", modes(0.05, True), 5, 5),
        ("4 + 8 runs of dependent phases, 10 % between runs", phases, 4, 8),
    ]
    for number, (name, run, first, second) in enumerate(cases):
        rng = np.random.default_rng([2001, number])
        found = [
            compare_samples([[run(rng) for _ in range(n)] for n in (first, second)]) for _ in range(trials)
        ]
        rows.append((f"alike: {name}", told(found), "different <= 5 %"))
    return rows


def alike_single_runs(trials: int) -> list[Row]:
    """Compare single runs whose phases are slow or fast, and correlated in time."""
    rows = []
    for phases, memory, heavy in (
        (8, 0.95, False),
        (16, 0.0, False),
        (16, 0.8, True),
        (40, 0.0, True),
        (40, 0.5, False),
        (160, 0.0, False),
        (160, 0.5, True),
        (160, 0.8, False),
        (160, 0.95, False),
    ):
        rng = np.random.default_rng([2002, phases, int(100 * memory)])
        found = [
            compare_samples([[run_of_phases(rng, phases, memory=memory, heavy=heavy)] for _ in range(2)])
            for _ in range(trials)
        ]
        name = f"alike: one run per group, {phases} phases, correlation {memory:g}" + ", heavy tails" * heavy
        rows.append((name, told(found), "different <= 5 %"))
    return rows


def slower_modes(trials: int) -> list[Row]:
    """Compare 5 + 5 runs of 1,000 calls of which one mode takes 10 % longer."""
    rows = []
    small = ((1e-3, 0.6, 0.2), (4e-3, 0.3, 0.2), (16e-3, 0.1, 0.2))
    for number, modes in enumerate((TWO_MODES, THREE_MODES, small)):
        for which in range(len(modes)):
            rng = np.random.default_rng([2003, number, which])
            factors = np.where(np.arange(len(modes)) == which, 1.1, 1.0)
            found = []
            for _ in range(trials):
                groups = [
                    [run_of_modes(rng, modes, factors=scale) for _ in range(5)] for scale in (None, factors)
                ]
                found.append(compare_samples(groups))
            moves = [
                move
                for one in found
                for move in one.moved
                if (move.what, move.mode) == ("mode place", which + 1)
            ]
            alone = sum(len(one.moved) == 1 and one.moved[0].mode == which + 1 for one in found)
            inside = np.mean([move.effect.low <= 1.1 <= move.effect.high for move in moves])
            share = modes[which][1]
            rows.append(
                (
                    f"a tenth more of mode {which + 1} of {len(modes)} ({share:.0%} of the calls)",
                    f"{told(found)}; named alone {alone / trials:.1%}; interval holds it {inside:.0%}",
                    "different >= 95 %",
                )
            )
    return rows


def slower_single_runs(trials: int) -> list[Row]:
    """Compare single runs of which one takes 25 % longer."""
    rows = []
    for phases, memory in ((24, 0.0), (40, 0.0), (160, 0.5), (160, 0.8)):
        rng = np.random.default_rng([2006, phases, int(100 * memory)])
        found = [
            compare_samples([[run_of_phases(rng, phases, memory=memory, factor=f)] for f in (1.0, 1.25)])
            for _ in range(trials)
        ]
        rows.append(
            (
                f"a quarter more of all, one run per group, {phases} phases, correlation {memory:g}",
                told(found),
                "",
            )
        )
    return rows


def real_tables(trials: int) -> list[Row]:
    """Compare random halves of a real run's phases, and repetitions of a benchmark."""
    folder = Path(os.environ.get("ENSIO_DATA") or ROOT.parent / "shared" / "data") / "tables"
    if not folder.is_dir():
        return [("real tables: not measured, since ENSIO_DATA names no folder with tables", "", "")]
    rows = []
    with np.load(folder / "vpic_hdf5_summit_gpfs_192.npz") as table:
        table = dict(table)
    for op, size, name in (
        (1, 1 << 19, "write 512 KiB"),
        (0, 1 << 19, "read 512 KiB"),
        (1, 55296, "write 54 KiB"),
    ):
        mine = (table["op"] == op) & (table["length"] == size) & (table["layer"] == 0)
        duration_s, phase = (
            (table["end"] - table["start"])[mine],
            ordinals(table["rank"][mine], table["start"][mine]),
        )
        rng = np.random.default_rng([2004, op, size])
        found = []
        for _ in range(trials):
            side = rng.permutation(phase.max() + 1) % 2
            sides = [side[phase] == number for number in (0, 1)]
            found.append(en.compare(*(en.Ensemble(duration_s[here], phase=phase[here]) for here in sides)))
        rows.append(
            (f"VPIC {name}: {phase.max() + 1} phases dealt out at random", told(found), "different <= 5 %")
        )
    for name in ("local_bufwr256k_6runs", "local_dirwr64k_6runs"):
        with np.load(folder / f"{name}.npz") as table:
            table = dict(table)
        runs = []
        for number in np.unique(table["run"]):
            mine = table["run"] == number
            columns = {"rank": table["rank"][mine], "start_ns": np.rint(table["start"][mine] * 1e9)}
            runs.append(en.Ensemble((table["end"] - table["start"])[mine], **columns))
        found = [en.compare(runs[:3], runs[3:]), en.compare(runs[::2], runs[1::2])]
        rows.append((f"{name}: 3 against 3 repetitions, two ways", told(found), "never different"))
        pairs = [en.compare(a, b) for i, a in enumerate(runs) for b in runs[:i]]
        rows.append((f"{name}: pairs of single repetitions", told(pairs), "fewer than 15 of 15 different"))
    return rows


def ordinals(rank: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the number of each call among those of its rank, from 0."""
    order = np.lexsort((start, rank))
    _, count = np.unique(rank, return_counts=True)
    ordinal = np.empty(len(order), np.int64)
    ordinal[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    return ordinal


def speed() -> list[Row]:
    """Measure the processor time of the statistics alone, from samples."""
    rng = np.random.default_rng(2005)
    many = [[run_of_modes(rng, THREE_MODES, calls=1_000_000) for _ in range(5)] for _ in range(2)]
    phase = np.repeat(np.arange(1000), 1000)
    single = [[CountedDurations.from_durations(rng.lognormal(-7, 0.5, 1_000_000), phase)] for _ in range(2)]
    rows = []
    for name, groups in (
        ("5 + 5 runs of a million calls", many),
        ("one run per group, 1,000 phases of 1,000 calls", single),
    ):
        compare_samples(groups)
        before = time.thread_time()
        compare_samples(groups)
        rows.append((f"processor time: {name}", f"{time.thread_time() - before:.2f} s", "about a second"))
    return rows


def told(found: list) -> str:
    """Return the share of each verdict."""
    n = len(found)
    if n < 20:
        return ", ".join(
            f"{verdict} {sum(one.verdict == verdict for one in found)} of {n}" for verdict in VERDICTS
        )
    return ", ".join(
        f"{verdict} {sum(one.verdict == verdict for one in found) / n:.1%}" for verdict in VERDICTS
    )


VERDICTS = ("different", "same", "inconclusive")

if __name__ == "__main__":
    main("--quick" in sys.argv)
