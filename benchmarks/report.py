"""Measure a report of 10 million events: time, memory and size, and the speedup of the compiled kernels.

The command runs as for a user: imports, reading, summaries, figures, writing. The kernels are compared with
NumPy in this process, on events that are shorter than a cell of time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))
from oracles import numpy_summaries

from ensembles.summaries import kernels
from ensembles.summaries.bins import BIN_COUNT
from ensembles.workloads.synthetic import synthetic_run

SHAPES = {"64 tasks × 156,250": (64, 156_250), "10,240 tasks × 977": (10_240, 977)}
REPEATS = 3

BYTES = """
import os, sys
buffer = bytearray(1 << 20)
for entry in os.scandir(sys.argv[1]):
    with open(entry.path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
"""
REPORT = """
import sys
from ensembles.cli.main import main
if main(["report", *sys.argv[1:]]) != 0:
    sys.exit("no report was written")
"""
PEAK = """
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def best_time(program: str, *arguments: str) -> tuple[float, float]:
    """Return wall seconds and peak memory in MiB of a Python program, the best of several runs."""
    results = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        command = [sys.executable, "-c", program + PEAK, *arguments]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        peak_kib = int(done.stdout.split()[-1])
        results.append((time.perf_counter() - begin, peak_kib / 1024))
    return min(results)


def report_rows(folder: Path) -> list[dict]:
    """Measure the command for each shape of a run."""
    rows = []
    for name, (tasks, events_per_task) in SHAPES.items():
        run, page = folder / "run", folder / "report.html"
        synthetic_run(run, tasks, events_per_task)
        baseline_s, _ = best_time(BYTES, str(run))
        elapsed_s, peak_mib = best_time(REPORT, str(run), "-o", str(page))
        rows.append(
            {
                "run": name,
                "report_s": elapsed_s,
                "reading_its_bytes_s": baseline_s,
                "ratio": elapsed_s / baseline_s,
                "peak_memory_mib": peak_mib,
                "page_mib": page.stat().st_size / (1 << 20),
            }
        )
        for spool in run.iterdir():
            spool.unlink()
    return rows


def kernel_rows(events: int) -> list[dict]:
    """Measure events per second of each kernel and of NumPy."""
    random = np.random.default_rng(0)
    start = np.sort(random.integers(0, 10**11, events))
    duration = random.integers(0, 10**5, events)
    row = np.arange(events, dtype=np.int32) // -(-events // 1024)
    amount = random.integers(0, 1 << 20, events)
    call = random.integers(0, 5, events).astype(np.uint16)
    raster, rate = np.zeros((1024, 2048), np.int64), np.zeros((2, 2048), np.int64)
    pairs: dict[str, tuple[Callable, Callable]] = {
        "time into a raster": (
            lambda: kernels.spread(start, duration, row, None, 26, 0, raster),
            lambda: numpy_summaries.spread(start, duration, row, None, 26, 0, raster),
        ),
        "bytes into a rate": (
            lambda: kernels.spread(start, duration, row & 1, amount, 26, 0, rate),
            lambda: numpy_summaries.spread(start, duration, row & 1, amount, 26, 0, rate),
        ),
        f"durations into {BIN_COUNT:,} bins": (
            lambda: kernels.count_bins(call, duration, 5),
            lambda: numpy_summaries.count_bins(call, duration, 5),
        ),
    }
    rows = []
    for name, (compiled, numpy) in pairs.items():
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(REPEATS):
            for function, results in zip((compiled, numpy), seconds, strict=True):
                begin = time.perf_counter()
                function()
                results.append(time.perf_counter() - begin)
        compiled_s, numpy_s = (statistics.median(results) for results in seconds)
        rows.append(
            {
                "kernel": name,
                "compiled_m_per_s": events / compiled_s / 1e6,
                "numpy_m_per_s": events / numpy_s / 1e6,
                "ratio": numpy_s / compiled_s,
            }
        )
    return rows


def main() -> None:
    """Print the measurements."""
    os.environ["ENSIO_CACHE"] = "0"  # every pass is made
    parser = argparse.ArgumentParser(description="Measure reports and the kernels of the summaries.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-bench-") as folder:
        reports = report_rows(Path(folder))
    compiled = kernel_rows(5_000_000)
    if args.json:
        print(json.dumps({"reports": reports, "kernels": compiled}))
        return
    print(f"ensio report, whole command, best of {REPEATS}")
    headers = ("run", "report (s)", "reading its bytes (s)", "ratio", "peak MiB", "page MiB")
    print(tabulate([row.values() for row in reports], headers, floatfmt=".2f"))
    print("\nkernels, million events per second")
    headers = ("kernel", "compiled", "NumPy", "ratio")
    print(tabulate([row.values() for row in compiled], headers, floatfmt=".1f"))


if __name__ == "__main__":
    main()
