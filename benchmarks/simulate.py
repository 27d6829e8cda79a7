"""Measure ``ensio-simulate``: events per CPU second and peak memory.

The baseline is events that do not reach the model. 10,240 and a million tasks are measured in mode profile.
Every measurement is a separate process, which has its own peak memory; results are the best of several.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench import BUILD, use
from tabulate import tabulate

REPEATS = 3
PROGRAM = BUILD / "bin" / "ensio-simulate"
MIB = 1 << 20

PROGRAMS = {
    "lseek (baseline: no model)": ("posix.lseek", 0),
    "barriers": ("mpi.barrier", 0),
    "write of 4 KiB": ("posix.pwrite", 4096),
    "write of 1 MiB": ("posix.pwrite", MIB),
    "read of 1 MiB": ("posix.pread", MIB),
    "collective write of 64 KiB": ("mpiio.write_at_all", 65536),
}
HEADERS = ("calls", "tasks", "events", "CPU ns per event", "× baseline", "M events per CPU s", "peak MiB")


def write_plan(path: Path, tasks: int, calls: int, call: str, size: int) -> None:
    """Write a plan in which every task opens a file and makes `calls` calls in a separate region."""
    opened = "mpiio.open" if call.startswith("mpiio.") else "posix.open"
    text = (
        f"seed 1\ntasks {tasks}\ntasks_per_node 4\ncalls 2\n{opened}\n{call}\n"
        "files 1\n/simulated/data\nhints 0\n"
        f"steps 2\nopen 0\nmove 0\noperations {tasks * (calls + 1)}\n"
    ).encode()
    with path.open("wb") as file:
        file.write(b"ensio-plan 2 %d\n" % len(text) + text)
        np.full(tasks, calls + 1, np.int64).tofile(file)
        for first in range(0, tasks, 65536):  # limits the memory of a million tasks
            rank = np.arange(first, min(tasks, first + 65536))
            rows = np.zeros((len(rank), calls + 1, 9), np.int64)
            rows[:, 1:, :2] = 1
            rows[:, 1:, 2] = -1 if call.startswith("mpi.") else 0
            rows[:, 1:, 3] = (rank[:, None] * calls + np.arange(calls)) * size
            rows[:, 1:, 4] = size
            rows[:, :, [5, 7]] = 1
            rows.tofile(file)


def measure(plan: Path, folder: Path, mode: str) -> tuple[int, float, float]:
    """Return events, CPU seconds and peak memory in MiB of a simulation."""
    settings, output = folder / "settings", folder / "output"
    settings.touch()
    output.mkdir(exist_ok=True)
    used = use([PROGRAM, "--mode", mode, plan, settings, 1, output], may_fail=True)
    if used.status:
        sys.exit(f"{PROGRAM} failed: build it with ./dev setup")
    told = dict(line.split(" ", 1) for line in (output / "text").read_text().splitlines()[:8])
    return int(told["events"]), used.processor_s, used.peak_mib


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="omit the million tasks")
    args = parser.parse_args()
    cases = [(name, call, size, 1024, 500, "trace") for name, (call, size) in PROGRAMS.items()]
    large = [10_240] if args.quick else [10_240, 1_000_000]
    cases += [("write of 1.6 MB, profile", "posix.pwrite", 1_600_000, tasks, 3, "profile") for tasks in large]
    rows, baseline_ns = [], 0.0
    for name, call, size, tasks, calls, mode in cases:
        with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=BUILD) as folder:
            plan = Path(folder) / "plan"
            write_plan(plan, tasks, calls, call, size)
            repeats = 1 if tasks > 100_000 else REPEATS
            found = [measure(plan, Path(folder), mode) for _ in range(repeats)]
        events, seconds, peak_mib = found[0][0], min(one[1] for one in found), max(one[2] for one in found)
        ns = 1e9 * seconds / events
        baseline_ns = baseline_ns or ns
        numbers = (f"{ns:.0f}", f"{ns / baseline_ns:.1f}", f"{1e3 / ns:.2f}", f"{peak_mib:.0f}")
        rows.append((name, f"{tasks:,}", f"{events:,}", *numbers))
    print(tabulate(rows, HEADERS, disable_numparse=True, colalign=("left", *["right"] * (len(HEADERS) - 1))))


if __name__ == "__main__":
    main()
