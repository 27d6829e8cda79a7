"""Compare what a recorded call costs under ensio, its floor and other tracers, in alternated rounds."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import bench

CALLS = {
    "pwrite": 100_000,
    "pwrite-file": 100_000,
    "pread": 100_000,
    "fwrite": 300_000,
    "open": 50_000,
    "stat": 50_000,
}
SHOWN = {
    "pwrite": "pwrite 8 B, /dev/null",
    "pwrite-file": "pwrite 8 B, a file",
    "pread": "pread 4 KiB",
    "fwrite": "fwrite 8 B",
    "open": "open + close",
    "stat": "stat",
}
THREADS = (1, 2, 4)
THREAD_CALLS = ("pwrite", "pwrite-file", "pread")
ROUNDS = 7
GOAL_FLOORS = 1.3
GOAL_TOGETHER = 1.2

# Added ns for a write of 8 bytes to /dev/null (untraced 207 ns), measured on a similar machine.
STATED_NS = {"IPM, counters": 49, "Score-P writing OTF2": 274, "Recorder": 605}

# The wheel also contains a debug build, libdftracer_preload_dbg.so, which takes 15 times as long.
FIND_DFTRACER = """
import importlib.util, pathlib
found = importlib.util.find_spec("dftracer")
roots = found.submodule_search_locations if found else []
libraries = [path for root in roots for path in pathlib.Path(root).rglob("libdftracer_preload.so")]
print(libraries[0] if libraries else "")
"""


@dataclass
class Way:
    """A way to run the program."""

    name: str
    environment: dict[str, str]  # Added to that of the untraced program
    binary: str = "program"  # The program
    records: tuple[str, ...] = tuple(CALLS)  # The calls that it records
    # Thread CPU time of a call in each round, ns, by call and number of threads
    results: dict[tuple[str, int], list[float]] = field(default_factory=dict)

    def measure(self, call: str, threads: int, folder: Path) -> None:
        """Add one round."""
        done = subprocess.run(
            [bench.program(self.binary), call, str(CALLS[call]), str(threads - 1)],
            env=bench.environment(folder / "run") | self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        self.results.setdefault((call, threads), []).append(float(done.stdout.split()[0]))


def ours(folder: Path) -> list[Way]:
    """Return the floor, and the ways of ensio."""
    preload = {"LD_PRELOAD": str(bench.PRELOAD)}
    return [
        Way("floor", {"BENCH_FLOOR": str(folder), "ENSIO_DISABLE": "1"}),
        Way("ensio", preload),
        Way("ensio, relinked", {}, "relinked"),
        Way("ensio, profile", preload | {"ENSIO_MODE": "profile"}),
        Way("ensio, tail", preload | {"ENSIO_MODE": "tail"}),
        Way("ensio, no call sites", preload | {"ENSIO_CALLPATH": "0"}),
        Way("ensio, paths of 4 callers", preload | {"ENSIO_CALLPATH": "4"}),
    ]


def darshan(library: str | None, folder: Path) -> tuple[list[Way], str]:
    """Return the ways of Darshan, or the reason why there is none."""
    if not library:
        return [], "ENSIO_TEST_DARSHAN names no libdarshan.so"
    (folder / "darshan").mkdir()
    base = {
        "LD_PRELOAD": library,
        "DARSHAN_ENABLE_NONMPI": "1",
        "DARSHAN_LOG_DIR": str(folder / "darshan"),
        "DARSHAN_LOGPATH": str(folder / "darshan"),
    }
    records = ("pwrite-file", "pread", "open", "stat")  # not what is below /dev
    return [
        Way("Darshan, counters", base, records=records),
        Way("Darshan, DXT", base | {"DXT_ENABLE_IO_TRACE": "1"}, records=records),
    ], ""


def dftracer(python: str | None, folder: Path) -> tuple[list[Way], str]:
    """Return the way of DFTracer, or the reason why there is none."""
    if not python:
        return [], "DFTRACER_PYTHON names no Python that imports dftracer (from PyPI)"
    found = subprocess.run([python, "-c", FIND_DFTRACER], capture_output=True, text=True)
    library = found.stdout.strip()
    if not library:
        return [], f"{python} does not have dftracer with a preload library"
    settings = {
        "LD_PRELOAD": library,
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_DATA_DIR": "all",  # a folder would exclude /dev/null
        "DFTRACER_INC_METADATA": "1",  # sizes and offsets
        "DFTRACER_LOG_FILE": str(folder / "dftracer"),
    }
    # Not what names no path, on a descriptor of mkstemp, nor stat.
    return [Way("DFTracer", settings, records=("pwrite", "fwrite", "open"))], ""


def added(way: Way, untraced: Way, key: tuple[str, int]) -> float:
    """Return the median over rounds of what a way adds to a call, ns."""
    return statistics.median(
        mine - plain for mine, plain in zip(way.results[key], untraced.results[key], strict=True)
    )


def measured(
    ways: list[Way], calls: tuple[str, ...], threads: tuple[int, ...], rounds: int, folder: Path
) -> None:
    """Run the program in each way, round after round."""
    for number in range(rounds):
        for call in calls:
            for count in threads:
                for way in ways:
                    way.measure(call, count, folder)
                for left in folder.glob("*/*"):
                    left.unlink()
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)


def print_calls(untraced: Way, ways: list[Way], rounds: int, notes: list[str]) -> None:
    """Print the table of calls."""
    rows = []
    for call, shown in SHOWN.items():
        key = (call, 1)
        rows.append(
            [
                f"{shown} ({statistics.median(untraced.results[key]):,.0f})",
                *(f"{added(way, untraced, key):,.0f}" if call in way.records else "–" for way in ways),
            ]
        )
    bench.table(
        f"ns that recording adds to a call (untraced): thread CPU time, median of {rounds} alternated rounds",
        ["call", *(way.name for way in ways)],
        rows,
        "\n".join(
            [
                "The floor: two readings of the clock, 48 bytes into a growing shared mapping of a file;",
                f"goal of ensio: at most {GOAL_FLOORS} floors. –: the tracer does not record the call.",
                *notes,
            ]
        ),
    )


def print_threads(untraced: Way, ways: list[Way], rounds: int) -> None:
    """Print the table of threads."""
    rows = []
    for call in THREAD_CALLS:
        for way in ways:
            if call not in way.records:
                continue
            costs = [added(way, untraced, (call, count)) for count in THREADS]
            rows.append([SHOWN[call], way.name, *(f"{cost:,.0f}" for cost in costs)])
    bench.table(
        f"the same with threads: mean over threads, median of {rounds} rounds, beside untraced threads",
        ["call", "tracer", *(f"{count} thread{'s' * (count > 1)}" for count in THREADS)],
        rows,
        f"goal of ensio: with two and four threads at most {GOAL_TOGETHER} times the cost with one.",
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds (default: %(default)s)")
    parser.add_argument(
        "--dftracer-python",
        default=os.environ.get("DFTRACER_PYTHON"),
        metavar="PYTHON",
        help="interpreter with DFTracer (default: $DFTRACER_PYTHON)",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as name:
        folder = Path(name)
        untraced = Way("untraced", {"ENSIO_DISABLE": "1"})
        own = ours(folder)
        rivals, notes = [], []
        for found, why_not in (
            darshan(os.environ.get("ENSIO_TEST_DARSHAN"), folder),
            dftracer(options.dftracer_python, folder),
        ):
            rivals += found
            notes += [f"Not measured: {why_not}."] * bool(why_not)
        stated = ", ".join(f"{name} {cost}" for name, cost in STATED_NS.items())
        notes.append(f"Measured earlier on a similar machine, write to /dev/null, ns: {stated}.")
        measured([untraced, *own, *rivals], tuple(CALLS), (1,), options.rounds, folder)
        print_calls(untraced, [*own, *rivals], options.rounds, notes)
        in_threads = [way for way in (*own, *rivals) if way.name in ("floor", "ensio", "ensio, profile")]
        in_threads += [way for way in rivals if way.name.startswith("Darshan")]
        for way in (untraced, *in_threads):
            way.results.clear()
        measured([untraced, *in_threads], THREAD_CALLS, THREADS, options.rounds, folder)
        print_threads(untraced, in_threads, options.rounds)


if __name__ == "__main__":
    main()
