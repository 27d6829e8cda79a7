"""Measure what commands cost whose summaries are kept: processor time over start-up.

Each command runs with nothing kept (``ENSIO_CACHE=0``), for the first time, and again, in turns. The start-up
is that of ``ensio info`` on a run of forty calls. The size of the kept summaries and what they add to ``ensio
collect`` are printed too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from bench import use
from synthetic_runs import synthetic_run
from tabulate import tabulate

TREE = Path(__file__).resolve().parents[1]
COMMANDS = ("info", "files", "modes", "tail --tasks 1024", "phases", "rate", "ordinals", "diagnose", "report")
SPOOLS = ("info", "report")


def processor_s(arguments: list[str], **settings: str) -> float:
    """Run a command and return the seconds of processor time of its process."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return use([TREE / ".venv" / "bin" / "ensio", *arguments], environment | settings).processor_s


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--calls", type=int, default=312_500, help="calls of a task (default: 312500)")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-bench-") as name:
        measure(Path(name), args.tasks, args.calls, args.repeats)


def measure(folder: Path, tasks: int, calls: int, repeats: int) -> None:
    """Measure a synthetic run of a number of tasks and calls in a folder."""
    small, spools, collected = folder / "small", folder / "run", folder / "run.h5"
    synthetic_run(small, 4, 10)
    synthetic_run(spools, tasks, calls, seed=3, tasks_per_node=8, phases=20)
    collects: dict[str, list[float]] = {"0": [], "1": []}
    sizes = {}
    for _ in range(repeats):
        for switch, taken in collects.items():
            taken.append(processor_s(["collect", str(spools), "-o", str(collected)], ENSIO_CACHE=switch))
            sizes[switch] = collected.stat().st_size
    off, on = (statistics.median(taken) for taken in collects.values())
    print(f"{tasks * calls:,} calls: collect {off:.2f} s, {on:.2f} s with kept summaries ({on / off:.2f})")
    print(f"trace.h5: {sizes['0']:,} bytes, {sizes['1'] - sizes['0']:,} more with them\n")
    time.sleep(3)  # files that have just changed are not cached
    lines = [(line, collected) for line in COMMANDS] + [(line, spools) for line in SPOOLS]
    rows = []
    cache = folder / "cache"
    for line, run in lines:
        command, *more = line.split()
        more += ["-o", str(folder / "report.html")] if command == "report" else []
        taken: dict[str, list[float]] = {"start": [], "off": [], "first": [], "again": []}
        for _ in range(repeats):
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
            words, home = [command, str(run), *more], str(cache)
            taken["start"].append(processor_s(["info", str(small)], ENSIO_CACHE="0"))
            taken["off"].append(processor_s(words, ENSIO_CACHE="0"))
            taken["first"].append(processor_s(words, XDG_CACHE_HOME=home, ENSIO_CACHE="1"))
            taken["again"].append(processor_s(words, XDG_CACHE_HOME=home, ENSIO_CACHE="1"))
        start = statistics.median(taken["start"])
        off, first, again = (statistics.median(taken[key]) - start for key in ("off", "first", "again"))
        kept_bytes = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
        where = "trace.h5" if run == collected else "spools"
        figures = [f"{value:.2f} s" for value in (off, first, again)]
        rows.append([f"`{line}`", where, *figures, f"{off / max(again, 1e-3):.0f}", f"{kept_bytes:,}"])
    headers = ["command", "run", "nothing kept", "first", "again", "times", "bytes in the cache"]
    print(tabulate(rows, headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
