"""Measure the constant cost of the recorder: start and end, memory, end of a long recording."""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import bench

PAIRS = 100
EVENTS = 1_000_000
THREADS = 16
GOAL_START_MS = 5.0
GOAL_EXIT_US = 0.2
GOAL_PROCESS_MIB = 4.0
GOAL_THREAD_MIB = 1.0

PRELOADED = {"LD_PRELOAD": str(bench.PRELOAD)}


def start_and_end(folder: str) -> None:
    """Compare empty programs with and without the recorder, in alternation."""
    untraced = bench.environment(folder)
    ways = {
        "relinked": ([bench.program("empty-relinked")], untraced),
        "preloaded": ([bench.program("empty")], untraced | PRELOADED),
        "relinked, ENSIO_DISABLE=1": ([bench.program("empty-relinked")], untraced | {"ENSIO_DISABLE": "1"}),
    }
    rows = []
    for name, (command, environment) in ways.items():
        cpu_ms, wall_ms = [], []
        for _ in range(PAIRS):
            base = bench.use([bench.program("empty")], untraced)
            ours = bench.use(command, environment)
            cpu_ms.append(1e3 * (ours.processor_s - base.processor_s))
            wall_ms.append(1e3 * (ours.clock_s - base.clock_s))
        rows.append([name, f"{statistics.median(cpu_ms):.2f}", f"{statistics.median(wall_ms):.2f}"])
    bench.table(
        f"start and end of the recorder in an empty program, ms, medians of {PAIRS} pairs",
        ["instrumentation", "CPU time", "wall time"],
        rows,
        f"goal: at most {GOAL_START_MS:g} ms",
    )


def exit_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the CPU seconds from the last line of main to the end of a program."""
    used = bench.use(command, environment, keep=True)
    return used.processor_s - int(used.printed.split()[1]) / 1e9


def end_of_recording(folder: str) -> None:
    """Measure the CPU time after main for many events, minus that without events."""
    rows = []
    for name, binary, extra in (("relinked", "relinked", {}), ("preloaded", "program", PRELOADED)):
        environment = bench.environment(folder) | extra
        costs = []
        for _ in range(5):
            many = exit_seconds([bench.program(binary), "pwrite", str(EVENTS)], environment)
            none = exit_seconds([bench.program(binary), "pwrite", "0"], environment)
            costs.append((many - none) / EVENTS * 1e6)
        rows.append([name, f"{EVENTS:,}", f"{statistics.median(costs):.4f}"])
    bench.table(
        "end of a long recording: CPU time after main, µs per event",
        ["instrumentation", "events", "µs per event"],
        rows,
        f"goal: at most {GOAL_EXIT_US:g} µs (compression in Darshan: 1.5–2 µs, published)",
    )


def memory(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Return the memory of a paused program in MiB, by kind of mapping."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    sizes = {"address space": 0.0, "private": 0.0, "spool": 0.0}
    name = ""
    for line in Path(f"/proc/{process.pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = line
            continue
        key, value = line.split(":", 1)
        kib = int(value.split()[0]) if value.strip().endswith("kB") else 0
        if key == "Size":
            sizes["address space"] += kib / 1024
        elif key == "Rss" and name.endswith(".spool"):
            sizes["spool"] += kib / 1024
        elif key in ("Private_Dirty", "Private_Clean") and not name.endswith(".spool") and ".so" not in name:
            sizes["private"] += kib / 1024
    process.communicate()
    return sizes


def memory_table(folder: str) -> None:
    """Measure the memory that the recorder adds per process and thread, after few and many events."""
    rows = []
    for name, binary, extra in (("relinked", "relinked", {}), ("preloaded", "program", PRELOADED)):
        for calls in (10, 200_000):
            added = {}
            for threads in (0, THREADS):
                arguments = ["pwrite", str(calls), str(threads), "hold"]
                plain = memory([bench.program("program"), *arguments], bench.environment(folder))
                ours = memory([bench.program(binary), *arguments], bench.environment(folder) | extra)
                added[threads] = {key: ours[key] - plain[key] for key in plain}
            for what, of in (
                ("process", added[0]),
                (
                    "additional thread",
                    {key: (added[THREADS][key] - added[0][key]) / THREADS for key in added[0]},
                ),
            ):
                values = (of[key] for key in ("private", "spool", "address space"))
                rows.append([name, f"{calls:,}", what, *(f"{value + 0.0:.3f}" for value in values)])
    bench.table(
        "memory that recording adds, MiB",
        ["instrumentation", "calls per thread", "per", "private", "pages of the spool", "address space"],
        rows,
        f"goal: at most {GOAL_PROCESS_MIB:g} MiB per process and {GOAL_THREAD_MIB:g} MiB per thread.\n"
        "The pages of the spool belong to the file: the kernel can write them back and drop them.\n"
        "A thread maps one window at a time.",
    )


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as folder:
        start_and_end(folder)
    for step in (end_of_recording, memory_table):
        with tempfile.TemporaryDirectory(prefix="ensio-bench-", dir=bench.BUILD) as folder:
            step(folder)


if __name__ == "__main__":
    main()
