"""Measure the cost of recording a call: medians, two threads, and the slowest calls."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile

import bench

CALLS = ("write", "pwrite", "lseek", "fwrite", "file_write", "open", "stat")
MOST_LAYOUTS = 6
GOAL_FLOORS = 1.5
GOAL_TOGETHER = 1.2


def numbers(mode: str, program: str, *arguments: object) -> dict[str, float]:
    """Return the numbers that a program prints, recorded into a temporary folder: "name number name ..."."""
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as folder:
        command = [bench.program(program), *arguments]
        words = bench.use(command, bench.environment(folder, ENSIO_MODE=mode), keep=True).printed.split()
    return {name: float(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def measure(call: str, mode: str, rounds: int, layouts: int) -> list[dict[str, float]]:
    """Return the numbers of each layout of the program."""
    measured = [numbers(mode, f"call-{layout}", call, rounds) for layout in range(layouts)]
    print(f"  {mode} {call}: measured", file=sys.stderr)
    return measured


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="rounds for each layout (default: %(default)s)")
    parser.add_argument(
        "--layouts",
        type=int,
        choices=range(1, MOST_LAYOUTS + 1),
        default=3,
        help="number of layouts of the program in memory (default: %(default)s)",
    )
    chosen = parser.parse_args()
    costs, threads, singles = [], [], []
    for mode in bench.MODES:
        for call in CALLS:
            layouts = measure(call, mode, chosen.rounds, chosen.layouts)
            middle = {name: statistics.median(row[name] for row in layouts) for name in layouts[0]}
            added = [layout["added_ns"] for layout in layouts]
            costs.append(
                [
                    mode,
                    call,
                    f"{middle['untraced_ns']:.1f}",
                    f"{middle['floor_ns']:.1f}",
                    f"{middle['added_ns']:.1f}",
                    f"{min(added):.1f} – {max(added):.1f}",
                    f"{middle['ratio']:.2f}",
                ]
            )
            if "together_ratio" in middle:
                names = ("added_ns", "threads_floor_ns", "alone_ns", "together_ns")
                values = [f"{middle[name]:.1f}" for name in names]
                threads.append([mode, call, *values, f"{middle['together_ratio']:.2f}"])
            single = numbers(mode, "single", call)
            for kind in ("untraced", "recorded"):
                quantiles = [f"{single[f'{kind}_{name}']:,.0f}" for name in ("50", "99", "99.9", "100")]
                singles.append([mode, call, kind, *quantiles])
    bench.table(
        "cost of a call: thread CPU ns, medians of pairs, median over layouts of the program",
        ["mode", "call", "untraced", "floor adds", "ensio adds", "by layout", "ensio : floor"],
        costs,
        f"goal: at most {GOAL_FLOORS} floors. Calls go to /dev/null; lseek, file_write, open (with a close)\n"
        "and stat to a file.",
    )
    bench.table(
        "two threads on separate cores: cost of recording in the slower one, ns",
        ["mode", "call", "one thread", "floor", "other thread idle", "both record", "ratio of pairs"],
        threads,
        f"goal: at most {GOAL_TOGETHER}. Floor and ratio are those of the process with two threads,\n"
        "in which libc uses other system call wrappers.",
    )
    bench.table(
        "slowest of 1,000,000 calls, wall time in ns, including the reading of the clock",
        ["mode", "call", "", "median", "p99", "p99.9", "slowest"],
        singles,
        "The slowest calls include those in which another process had the core and those that open a window.",
    )


if __name__ == "__main__":
    main()
