"""Measure large runs: memory and time of each command, and the scaling of a pass over worker processes.

Every measurement is a separate process, which has its own peak memory. Times are CPU time of all threads
and wall time; wall time is meaningful on an idle machine only. For workers, the table has the CPU time of
each; the longest one is the time of the pass with a processor for each worker.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import use
from synthetic_runs import synthetic_run
from tabulate import tabulate

import ensembles
from ensembles.answers.ordinals import Operations
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.summaries.cells import CellSummary
from ensembles.viz.report.data import report_requests

EVENTS_PER_TASK = 156_250

COMMANDS: dict[str, tuple[str, ...]] = {
    "info": (),
    "report": (),
    "diagnose": (),
    "rate": (),
    "phases": (),
    "ordinals": ("--op", "write"),
    "ordinals --by phase": ("--op", "write"),
    "modes": ("--op", "write"),
    "tail": ("--op", "write"),
    "split": ("--op", "write"),
    "rate --phase 2-3 --where ordinal=5-900": (),
}
"""Further options of each command."""


class UsedTime(Summary):
    """CPU time of a group of summaries in each process; must be the last of the group."""

    columns = ()

    def __init__(self) -> None:
        self.used_s = {}
        self._begin = time.process_time()

    def add(self, chunk) -> None:
        """Store the CPU time after the other summaries of the group."""
        self.used_s[os.getpid()] = time.process_time() - self._begin

    def finalize(self) -> None:
        """Store the CPU time at the end of a part."""
        self.used_s[os.getpid()] = time.process_time() - self._begin

    def merge(self, other: UsedTime) -> None:
        """Add the times of other ranks."""
        for pid, used_s in other.used_s.items():
            self.used_s[pid] = self.used_s.get(pid, 0.0) + used_s


def of_a_report(run) -> dict[str, SummaryRequest]:
    """Return the summaries of a report and of the findings."""
    return {**report_requests(run), **DiagnosisPass(run).requests}


def of_operations(_) -> dict[str, SummaryRequest]:
    """Return a cheap summary."""
    return {"operations": SummaryRequest(Operations)}


def from_cells(_) -> dict[str, SummaryRequest]:
    """Return the summary that the recorder keeps."""
    return {"cells": SummaryRequest(_cells)}


def _cells(run) -> CellSummary:
    return CellSummary(run.calls, run.files)


def commands(run: str, memory: str, folder: str, wanted: Sequence[str] = tuple(COMMANDS)) -> list[list[str]]:
    """Measure peak memory and times of each command."""
    rows = []
    for words in wanted:
        options = COMMANDS[words]
        name, *more = words.split()
        options = ("-o", os.path.join(folder, "report.html")) if name == "report" else options
        command = [sys.executable, "-m", "ensembles.cli.main", name, run, *more, *options, "--memory", memory]
        used = use(command, may_fail=True)
        figures = [f"{used.processor_s:.1f}", f"{used.clock_s:.1f}", f"{used.peak_mib:.0f}"]
        rows.append([words, *figures, "refused" if used.status else ""])
    return rows


def divided(run: str) -> list[list[str]]:
    """Measure one and two workers, for a cheap summary and expensive ones."""
    rows = []
    wanted = {"operations": of_operations, "all of a report": of_a_report, "cells": from_cells}
    for name, requests_of in wanted.items():
        whole = 0.0
        for workers in (1, 2):
            opened = ensembles.open(run, workers)
            requests = requests_of(opened) | {"used": SummaryRequest(ignoring_run(UsedTime))}
            used, begin = time.process_time(), time.perf_counter()
            found = opened.summarize(requests)["used"]
            elapsed, used = time.perf_counter() - begin, time.process_time() - used
            of_workers = list(found.used_s.values())
            # The parent merges when its workers are done.
            alone_s = max(of_workers) + (used if workers > 1 else 0.0)
            whole = whole or alone_s
            split = " + ".join(f"{used_s:.2f}" for used_s in of_workers)
            ratio = f"{whole / alone_s:.2f}"
            rows.append([name, str(workers), f"{elapsed:.2f}", split, f"{used:.2f}", ratio])
    return rows


def main() -> None:
    """Create a run unless one is given, and print two tables."""
    os.environ["ENSIO_CACHE"] = "0"  # every pass is made
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--events", type=float, default=1e7, help="events of the generated run (default: %(default)g)"
    )
    parser.add_argument("--run", help="existing run (default: generate one)")
    parser.add_argument(
        "--memory", default="1GiB", help="memory limit of each command (default: %(default)s)"
    )
    parser.add_argument("--only", choices=("commands", "workers"), help="table to print (default: both)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-scale-") as folder:
        run = args.run or str(Path(folder, "run"))
        if not args.run:
            synthetic_run(run, max(1, round(args.events / EVENTS_PER_TASK)), EVENTS_PER_TASK)
        events = ensembles.open(run).reading.most_events
        if args.only != "workers":
            print(f"\nabout {events:,} events, --memory {args.memory}")
            headers = ["command", "CPU s", "wall s", "peak MiB", ""]
            print(tabulate(commands(run, args.memory, folder), headers, disable_numparse=True))
        if args.only != "commands":
            print(f"\none pass over about {events:,} events, by workers")
            headers = [
                "summary",
                "workers",
                "wall s",
                "CPU s of each worker",
                "CPU s of the parent",
                "speedup",
            ]
            print(tabulate(divided(run), headers, disable_numparse=True))


if __name__ == "__main__":
    main()
