"""Measure the import of traces of other tools: events per second of CPU time, and peak memory.

Every measurement is a separate process, which has its own peak memory; results are the best of several. The
baseline of a format is a loop that only parses each line: with ``json.loads``, or by splitting at spaces.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile

from bench import in_process
from tabulate import tabulate

REPEATS = 2
IMPORTS = (
    "numpy, ensembles.run.open, ensembles.readers.foreign.dftracer.source, "
    "ensembles.readers.foreign.strace.source"
)

JSON = """
import gzip, json
count = 0
with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
    for line in file:
        count += len(json.loads(line)) > 0
"""
SPLIT = """
count = 0
with open(path, 'rb') as file:
    for line in file:
        count += len(line.split()) > 0
"""
OPEN = "import ensembles; run = ensembles.open(path); count = run.reading.most_events"

SORTED = """
import numpy as np
from ensembles.model.events import COLUMNS
from ensembles.readers.foreign.common.import_table import sorted_table
def blocks():
    draw = np.random.default_rng(1)
    for low in range(0, EVENTS, 1 << 20):
        length = min(1 << 20, EVENTS - low)
        block = {name: np.zeros(length, dtype) for name, dtype in COLUMNS.items()}
        block['rank'] = draw.integers(0, 64, length).astype('u4')
        block['start'] = np.arange(low, low + length) * 64
        yield block
count = len(sorted_table(blocks(), 'a trace', IN_MEMORY))
"""


def dftracer(path: str, events: int) -> None:
    """Write a trace in the format of DFTracer 4: one process, reads and writes of 100 files."""
    host = '"hhash":"6882804a826580cd"'
    with gzip.open(path, "wt", compresslevel=1) if path.endswith(".gz") else open(path, "w") as file:
        for number in range(100):
            file.write(
                f'{{"name":"FH","cat":"dftracer","type":1,"pid":7,"tid":7,"ph":4,"args":{{{host},'
                f'"name":"/scratch/data/{number}","value":"{number:016x}"}}}}\n'
            )
        time = 1_700_000_000_000_000
        for number in range(events):
            time += 20 + number * 7919 % 31
            name = ("write", "read", "pwrite64")[number % 3]
            offset = f'"offset":{number * 4096},' if number % 3 == 2 else ""
            file.write(
                f'{{"id":{number},"name":"{name}","cat":"POSIX","type":3,"pid":7,"tid":{7 + number % 4},'
                f'"ts":{time},'
                f'"dur":{number * 104729 % 997},"ph":1,"args":{{{host},"ret":4096,"count":4096,{offset}'
                f'"fhash":"{number % 100:016x}"}}}}\n'
            )


def strace(path: str, events: int) -> None:
    """Write a trace in the format of strace: four processes, reads and writes."""
    with open(path, "w") as file:
        for pid in range(4):
            file.write(
                f'{100 + pid} 1700000000.00000{pid} openat(AT_FDCWD, "/d/{pid}", O_RDWR) = 3 <0.000010>\n'
            )
        for number in range(events):
            time = 1_700_000_000_000_100 + number * 21
            name = ("write", "read")[number % 2]
            file.write(
                f"{100 + number % 4} {time // 1_000_000}.{time % 1_000_000:06d} "
                f'{name}(3, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 4096) = 4096 <0.{number % 997:06d}>\n'
            )


def main() -> None:
    """Print a table of the formats, and one of sorting by rank and start."""
    parser = argparse.ArgumentParser(description="Measure the import of traces of other tools.")
    parser.add_argument(
        "--events", type=int, default=500_000, help="calls of each trace (default: %(default)s)"
    )
    parser.add_argument("--sorted", type=int, default=20_000_000, help="calls to sort (default: %(default)s)")
    parser.add_argument("--directory", help="folder of the traces (default: temporary)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-imports-", dir=args.directory) as folder:
        rows = []
        for name, make, file, baseline in (
            ("DFTracer .pfw", dftracer, "t.pfw", JSON),
            ("DFTracer .pfw.gz", dftracer, "t.pfw.gz", JSON),
            ("strace", strace, "t.txt", SPLIT),
        ):
            path = os.path.join(folder, file)
            make(path, args.events)
            lines_s = in_process(baseline, IMPORTS, REPEATS, path=path).processor_s
            open_s, _, peak_mib, count = in_process(OPEN, IMPORTS, REPEATS, path=path)
            rows.append(
                (
                    name,
                    f"{os.path.getsize(path) / count:.0f}",
                    f"{lines_s:.2f}",
                    f"{open_s:.2f}",
                    f"{open_s / lines_s:.1f}",
                    f"{count / open_s / 1e6:.2f}",
                    f"{peak_mib:.0f}",
                )
            )
            os.remove(path)
        print(f"\n{args.events:,} calls, read and sorted; CPU seconds")
        headers = (
            "trace",
            "bytes per call",
            "lines only (s)",
            "into a run (s)",
            "ratio",
            "M calls/s",
            "peak MiB",
        )
        print(tabulate(rows, headers=headers, disable_numparse=True))
        rows = []
        for name, limit in (("in memory", args.sorted), ("through files", 0)):
            names = {"EVENTS": args.sorted, "IN_MEMORY": limit}
            elapsed_s, _, peak_mib, count = in_process(SORTED, IMPORTS, REPEATS, **names)
            rows.append((name, f"{elapsed_s:.2f}", f"{count / elapsed_s / 1e6:.1f}", f"{peak_mib:.0f}"))
        print(
            f"\n{args.sorted:,} calls of 64 tasks, sorted from time to rank and start (generation included)"
        )
        print(tabulate(rows, headers=("", "s", "M calls/s", "peak MiB"), disable_numparse=True))


if __name__ == "__main__":
    main()
