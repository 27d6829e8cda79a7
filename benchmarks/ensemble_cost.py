"""Measure the statistics of ensembles: from durations in memory, from a histogram, and from runs on disk.

The baseline is np.histogram and scipy.stats on the same calls in the same run. Times are CPU time of all
threads and wall time. Every step from disk is a separate process, which has its own peak memory. (The name
statistics.py would hide the module of the standard library.)
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from bench import in_process
from scipy import stats
from synthetic_runs import synthetic_run
from tabulate import tabulate

from ensembles import Ensemble
from ensembles.run.collect import collect
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries import kernels

REPEATS = 3

IMPORTS = "scipy.stats, ensembles, ensembles.ensemble.from_run, ensembles.readers.tracefile.tracefile"
BASELINE = """
import numpy as np
durations_s = np.concatenate([chunk.duration[chunk.op == 1] for chunk in ensembles.open(run).chunks()]) * 1e-9
np.histogram(np.log10(np.maximum(durations_s, 1e-9)), 512)
scipy.stats.describe(durations_s)
"""
ENSEMBLE = "ensemble = ensembles.open(run).ensemble(op='write')\n"
ALL = """
for statement in (ensemble.moments, ensemble.quantiles, ensemble.modes,
                  lambda: ensemble.tail(1024), lambda: ensemble.split([1, 2, 4, 8], 1024)):
    try:
        statement()
    except (ModuleNotFoundError, TypeError) as missing:
        print(missing, file=sys.stderr)
"""


def measure(step: Callable[[], Any]) -> tuple[float, float]:
    """Return CPU and wall seconds, the minimum of several runs."""
    results = []
    for _ in range(REPEATS):
        begin, used = time.perf_counter(), time.process_time()
        step()
        results.append((time.process_time() - used, time.perf_counter() - begin))
    return min(results)


def from_memory(count: int) -> list[list[str]]:
    """Measure durations in an array."""
    durations_s = np.random.default_rng(1).lognormal(-7, 1.0, count)
    phase = np.arange(count) * 64 // count
    steps = {
        "np.histogram + scipy.stats.describe": lambda: (
            np.histogram(np.log10(durations_s), 512),
            stats.describe(durations_s),
        ),
        "log histogram (kernels.count_seconds)": lambda: kernels.count_seconds(durations_s, 1e9),
        "Sample": lambda: CountedDurations.from_durations(durations_s),
        "Sample, 64 phases": lambda: CountedDurations.from_durations(durations_s, phase),
    }
    return with_ratios({name: measure(step) for name, step in steps.items()})


def from_histogram(count: int) -> list[list[str]]:
    """Measure statistics of a sample with 64 phases."""
    random = np.random.default_rng(2)
    durations_s = random.lognormal(-7, 0.5, count) * random.choice([1.0, 4.0], count, p=[0.7, 0.3])
    whole = Ensemble(durations_s, np.arange(count) * 64 // count)
    ensemble = Ensemble.from_sample(whole.sample)
    steps: dict[str, Callable[[], Any]] = {
        "np.histogram + scipy.stats.describe": lambda: (
            np.histogram(np.log10(durations_s), 512),
            stats.describe(durations_s),
        ),
        "moments": ensemble.moments,
        "quantiles": ensemble.quantiles,
        "modes": ensemble.modes,
        "tail": lambda: ensemble.tail(1024),
        "split": lambda: ensemble.split([1, 2, 4, 8], 1024),
    }
    found = {}
    for name, step in steps.items():
        try:
            found[name] = measure(step)
        except ModuleNotFoundError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return with_ratios(found)


def with_ratios(found: dict[str, tuple[float, float]]) -> list[list[str]]:
    """Rows, the first of which is the baseline."""
    baseline = next(iter(found.values()))[0]
    return [
        [name, f"{used:.3f}", f"{elapsed:.3f}", f"{used / baseline:.3f}"]
        for name, (used, elapsed) in found.items()
    ]


def from_disk(folder: str, events: int) -> list[list[str]]:
    """Measure a run in spools and in a trace.h5: the ensemble, and all of its statistics."""
    run = os.path.join(folder, "run")
    if not os.path.exists(run + ".h5"):
        synthetic_run(run, 64, events // 64)
        collect(run, run + ".h5")
    rows = []
    for where, path in (("spools", run), ("trace.h5", run + ".h5")):
        baseline = 0.0
        for name, step in (
            ("np.histogram + scipy.stats.describe", BASELINE),
            ("ensemble", ENSEMBLE),
            ("ensemble and all statistics", ENSEMBLE + ALL),
        ):
            used, elapsed, peak, _ = in_process(step, IMPORTS, REPEATS, run=path)
            baseline = baseline or used
            cells = [f"{used:.2f}", f"{elapsed:.2f}", f"{used / baseline:.3f}", f"{peak:.0f}"]
            rows.append([f"{where}: {name}", *cells])
    return rows


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description="Measure the cost of statistics of ensembles.")
    parser.add_argument(
        "--calls", type=int, default=20_000_000, help="durations in memory (default: %(default)s)"
    )
    parser.add_argument(
        "--events", type=int, default=10_000_000, help="events on disk, 0 to omit (default: %(default)s)"
    )
    parser.add_argument("--directory", help="folder of the run (default: temporary)")
    args = parser.parse_args()
    headers = ["step", "CPU s", "wall s", "ratio"]
    print(f"\n{args.calls:,} durations in memory")
    print(tabulate(from_memory(args.calls), headers, disable_numparse=True))
    print(f"\nfrom the histogram of {args.calls // 4:,} calls in 64 phases")
    print(tabulate(from_histogram(args.calls // 4), headers, disable_numparse=True))
    if args.events:
        with tempfile.TemporaryDirectory(prefix="ensio-ensemble-") as folder:
            rows = from_disk(args.directory or folder, args.events)
        print(f"\n{args.events:,} events on disk")
        print(tabulate(rows, [*headers, "peak MiB"], disable_numparse=True))


if __name__ == "__main__":
    main()
