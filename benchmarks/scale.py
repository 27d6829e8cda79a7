"""What large runs cost: memory and time of each command, and how a pass divides among worker processes.

Every measurement is a separate process, which gives its own peak memory. Times are of the processor (all
threads of the process) and of the clock; on a busy machine only the first mean anything. For workers the
processor time of each is told, and from the longest of these what the pass takes with a processor for each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tabulate import tabulate

import ensembles
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.structure.ordinals.detect import Operations
from ensembles.summaries.cells import CellSummary
from ensembles.viz.report import report_requests
from ensembles.workloads.synthetic import synthetic_run

EVENTS_PER_TASK = 156_250

COMMANDS: dict[str, tuple[str, ...]] = {
    "info": (),
    "report": (),
    "diagnose": (),
    "rate": (),
    "phases": (),
    "ordinals": ("--op", "write"),
    "ordinals --within phase": ("--op", "write"),
    "modes": ("--op", "write"),
    "tail": ("--op", "write"),
    "split": ("--op", "write"),
    "rate --phase 2-3 --ordinal 5-900": (),
}
"""By the words of the command: further options."""


class UsedTime(Summary):
    """What a group of summaries, of which this one is the last, takes in each process."""

    columns = ()

    def __init__(self) -> None:
        self.used_s = {}
        self._begin = time.process_time()

    def add(self, chunk) -> None:
        """The others have had these events."""
        self.used_s[os.getpid()] = time.process_time() - self._begin

    def finalize(self) -> None:
        """All events of a part were added."""
        self.used_s[os.getpid()] = time.process_time() - self._begin

    def merge(self, other: UsedTime) -> None:
        """Add those of other ranks."""
        for pid, used_s in other.used_s.items():
            self.used_s[pid] = self.used_s.get(pid, 0.0) + used_s

    def to_arrays(self) -> dict[str, np.ndarray]:
        """``pid`` and ``used_s``."""
        return {"pid": np.array(list(self.used_s)), "used_s": np.array(list(self.used_s.values()))}


def of_a_report(run) -> dict[str, SummaryRequest]:
    """The summaries of a report, and those that findings need."""
    return {**report_requests(run), **DiagnosisPass(run).requests}


def of_operations(_) -> dict[str, SummaryRequest]:
    """A cheap summary."""
    return {"operations": SummaryRequest(Operations)}


def from_cells(_) -> dict[str, SummaryRequest]:
    """The summary that the recorder keeps."""
    return {"cells": SummaryRequest(_cells)}


def _cells(run) -> CellSummary:
    return CellSummary(run.calls, run.files)


def commands(run: str, memory: str, folder: str, wanted: Sequence[str] = tuple(COMMANDS)) -> list[list[str]]:
    """Peak memory and times of each command."""
    rows = []
    for words in wanted:
        options = COMMANDS[words]
        name, *more = words.split()
        options = ("-o", os.path.join(folder, "report.html")) if name == "report" else options
        command = [sys.executable, "-m", "ensembles.cli.main", name, run, *more, *options, "--memory", memory]
        begin = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        used_s = usage.ru_utime + usage.ru_stime
        elapsed = f"{time.perf_counter() - begin:.1f}"
        peak = f"{usage.ru_maxrss / 1024:.0f}"
        rows.append([words, f"{used_s:.1f}", elapsed, peak, "" if process.returncode == 0 else "refused"])
    return rows


def divided(run: str) -> list[list[str]]:
    """One worker and two, for summaries of which the first is cheap and the others are work."""
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
            # What this process does beside its workers is merging, when they are done.
            alone_s = max(of_workers) + (used if workers > 1 else 0.0)
            whole = whole or alone_s
            split = " + ".join(f"{used_s:.2f}" for used_s in of_workers)
            ratio = f"{whole / alone_s:.2f}"
            rows.append([name, str(workers), f"{elapsed:.2f}", split, f"{used:.2f}", ratio])
    return rows


def main() -> None:
    """Make a run where there is none, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=float, default=1e7, help="in the run that is made (default: 1e7)")
    parser.add_argument("--run", help="a run that is there already")
    parser.add_argument("--memory", default="1GiB", help="what each command may take (default: %(default)s)")
    parser.add_argument("--only", choices=("commands", "workers"), help="one of the tables")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ensio-scale-") as folder:
        run = args.run or str(Path(folder, "run"))
        if not args.run:
            synthetic_run(run, max(1, round(args.events / EVENTS_PER_TASK)), EVENTS_PER_TASK)
        events = ensembles.open(run).most_events
        if args.only != "workers":
            print(f"\nabout {events:,} events, --memory {args.memory}")
            headers = ["command", "processor s", "clock s", "peak MiB", ""]
            print(tabulate(commands(run, args.memory, folder), headers, disable_numparse=True))
        if args.only != "commands":
            print(f"\none pass over about {events:,} events, by workers")
            headers = ["summary", "workers", "clock s", "processor s of each", "and of the parent", "x one"]
            print(tabulate(divided(run), headers, disable_numparse=True))


if __name__ == "__main__":
    main()
