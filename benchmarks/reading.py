"""Measure the reading and collecting of runs of 10 million events, with 64 and with 10,240 tasks.

The baseline is the time to read the bytes of the files. Slices of a ``trace.h5`` are measured too. Every
measurement is a separate process, which has its own peak memory; results are the best of three.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from bench import in_process
from synthetic_runs import synthetic_run
from tabulate import tabulate

SHAPES = {"64 tasks × 156,250": (64, 156_250), "10,240 tasks × 977": (10_240, 977)}
REPEATS = 3
IMPORTS = "numpy, ensembles.run.open, ensembles.run.collect, ensembles.writers.tracefile.tracefile"

BYTES = """
buffer = bytearray(1 << 20)
for path in sorted(os.scandir(run), key=lambda entry: entry.name):
    with open(path.path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
"""
NEW_MEMORY = "numpy.empty(56 * events, 'u1').fill(1)"
COLUMNS = "import ensembles; len(ensembles.open(run).events)"
CHUNKS = "import ensembles; sum(map(len, ensembles.open(run).chunks()))"
COLLECT = "from ensembles.run.collect import collect; collect(run, run + '.h5')"
RANK = "len(ensembles.open(run).select(rank=3))"
MOMENT = "len(ensembles.open(run).select(time='100..101'))"
EXPORT = (
    "import ensembles.cli.main as cli; cli.main(['export', run, '--to', '{0}', run + '.{0}', '--rank', '0'])"
)
INFO = "import ensembles.cli.main as cli; sys.stdout = open(os.devnull, 'w'); cli.main(['info', run])"

HEADERS = ("step", "wall s", "× baseline", "CPU s", "M events per CPU s", "peak MiB")
STEPS = (
    ("bytes of all spools (baseline)", BYTES, ""),
    ("spools into columns", COLUMNS, ""),
    ("spools in chunks", CHUNKS, ""),
    ("ensio info", INFO, ""),
    ("ensio collect", COLLECT, ""),
    ("trace.h5 into columns", COLUMNS, ".h5"),
    ("allocate and fill memory of the columns", NEW_MEMORY, ".h5"),
    ("trace.h5 in chunks", CHUNKS, ".h5"),
    ("one rank of trace.h5", RANK, ".h5"),
    ("one second of trace.h5", MOMENT, ".h5"),
    ("one rank as Parquet", EXPORT.format("parquet"), ".h5"),
    ("one rank for Perfetto", EXPORT.format("perfetto"), ".h5"),
)


def main() -> None:
    """Print a table for each shape of a run."""
    parser = argparse.ArgumentParser(description="Measure the reading of runs of 10 million events.")
    parser.add_argument("--directory", help="folder of the runs (default: temporary)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-reading-", dir=args.directory) as folder:
        for number, (shape, (tasks, events)) in enumerate(SHAPES.items()):
            run = os.path.join(folder, str(number))
            synthetic_run(run, tasks, events)
            rows, baseline_s = [], 0.0
            for name, step, suffix in STEPS:
                names = {"run": run + suffix, "events": tasks * events}
                used_s, elapsed_s, peak_mib, _ = in_process(step, IMPORTS, REPEATS, **names)
                baseline_s = baseline_s or elapsed_s
                rate = tasks * events / used_s / 1e6
                times = (f"{elapsed_s:.2f}", f"{elapsed_s / baseline_s:.1f}", f"{used_s:.2f}", f"{rate:.1f}")
                rows.append((name, *times, f"{peak_mib:.0f}"))
            print(f"\n{tasks * events:,} events: {shape}")
            print(tabulate(rows, HEADERS, disable_numparse=True))
            mib = sum(path.stat().st_size for path in Path(run).iterdir()) / 2**20
            size = os.path.getsize(run + ".h5")
            each = size / (tasks * events)
            print(f"spools {mib:.0f} MiB, trace.h5 {size / 2**20:.0f} MiB: {each:.1f} bytes per event")


if __name__ == "__main__":
    main()
