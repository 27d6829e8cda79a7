"""Measure large runs: commands on runs of any number of calls, one pass by worker processes, many processes.

Every measurement is a separate process, which has its own peak memory. Times are CPU time of all threads
and wall time; wall time is meaningful on an idle machine only. For workers, the table has the CPU time of
each; the longest one is the time of the pass with a processor for each worker.

Job files of up to a billion calls, or of many processes in mode profile, are made of a job of two ranks: the
record of the second rank is repeated, so that all ranks but the first refer to the same calls in the file.
The file fits into memory, and every command decodes and counts all calls.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import in_process, record_ranks, table, use
from synthetic_runs import synthetic_run

import ensembles
from ensembles.answers.ordinals import Operations
from ensembles.diagnosis.diagnose import DiagnosisPass
from ensembles.model.c_layout import JOB, JOB_PROCESS, SPOOL
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


STEPS = {
    "open": "ensembles.open(run)",
    "open, summary": "ensembles.open(run).summary",
    "ensio info": "sys.stdout = open(os.devnull, 'w'); ensembles.cli.main.main(['info', run])",
}
IMPORTS = (
    "numpy, ensembles.run.open, ensembles.cli.info, ensembles.cli.main, ensembles.answers.info, "
    "ensembles.summaries.from_cells, h5py"
)


def multiplied(job: bytes, processes: int) -> bytes:
    """Return a job file in which the last record is repeated with other ranks and names."""
    head = JOB.unpack(job)
    first = JOB_PROCESS.unpack(job, head.records).bytes
    record = bytearray(job[head.records + first : head.bytes])
    members = JOB_PROCESS.dtype.fields
    spool_at = members["spool"][1]
    rank_at, tasks_at, pid_at = (spool_at + SPOOL.dtype.fields[name][1] for name in ("rank", "tasks", "pid"))
    name = bytes(record[JOB_PROCESS.size : JOB_PROCESS.size + JOB_PROCESS.unpack(record).name_bytes])
    checked_from = members["name_bytes"][1]
    texts_from = len(record) - JOB_PROCESS.unpack(record).coded_bytes
    records = [job[head.records : head.records + first]]
    for rank in range(1, processes):
        for place, value in ((rank_at, rank), (tasks_at, processes), (pid_at, 1000 + rank)):
            record[place : place + 4] = value.to_bytes(4, "little")
        own = f"node{rank // 64:03}-{rank:05}".encode().ljust(len(name), b"x")[: len(name)]
        record[JOB_PROCESS.size : JOB_PROCESS.size + len(name)] = own
        checksum = zlib.crc32(record[checked_from:texts_from])  # texts have a sum apart
        record[members["checksum"][1] : checked_from] = checksum.to_bytes(4, "little")
        records.append(bytes(record))
    body = b"".join(records)
    changed = head._replace(processes=processes, bytes=head.records + len(body))
    packed, summed = JOB.pack(**changed._asdict()), JOB.field_offset("checksum")
    checksum = zlib.crc32(packed[:summed]).to_bytes(4, "little")
    head_bytes = packed[:summed] + checksum + packed[summed + 4 :]
    return head_bytes + job[JOB.size : head.records] + body + job[head.bytes :]


def job_files(folder: Path, calls: int, processes: Sequence[int], mode: str) -> Iterator[Path]:
    """Make a job file for each number of processes, one after the other."""
    job = (record_ranks(folder, 2, calls, mode)[0] / "job.ensio").read_bytes()
    for count in processes:
        path = folder / f"{count}.ensio"
        path.write_bytes(multiplied(job, count))
        yield path
        path.unlink()


def opened(path: Path) -> list[str]:
    """Measure what opening a job file of mode profile takes."""
    spent = [in_process(step, IMPORTS, 3, run=str(path)) for step in STEPS.values()]
    figures = [f"{each.processor_s:.2f} s, {each.peak_mib:.0f}" for each in spent]
    return [f"{int(path.stem):,}", f"{path.stat().st_size / 2**20:.1f}", *figures]


def main() -> None:
    """Print the tables."""
    os.environ["ENSIO_CACHE"] = "0"  # every pass is made
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", help="existing run of the commands and workers (default: generate one)")
    parser.add_argument("--events", type=float, default=1e7, help="events of that run (default: %(default)g)")
    parser.add_argument(
        "--processes", type=int, nargs="+", help="make job files of so many processes for both"
    )
    parser.add_argument(
        "--calls", type=int, help="calls of each of these processes (default: 1000000, 10000)"
    )
    parser.add_argument("--memory", default="1GiB", help="limit of each command (default: %(default)s)")
    parser.add_argument("--commands", nargs="+", choices=tuple(COMMANDS), default=tuple(COMMANDS))
    parser.add_argument("--only", choices=("commands", "workers", "profile"), help="table (default: all)")
    args = parser.parse_args()
    wanted = (args.only,) if args.only else ("commands", "workers", "profile")
    with tempfile.TemporaryDirectory(prefix="ensio-large-") as name:
        folder = Path(name)
        run = args.run or str(folder / "run")
        if not (args.run or args.processes or args.only == "profile"):
            synthetic_run(run, max(1, round(args.events / EVENTS_PER_TASK)), EVENTS_PER_TASK)
        if "commands" in wanted:
            many = job_files(folder, args.calls or 1_000_000, args.processes or (), "trace")
            rows: list[list[object]] = []
            for path in map(str, many) if args.processes else [run]:
                events = ensembles.open(path).reading.most_events
                for row in commands(path, args.memory, name, args.commands):
                    rows.append([f"{events:,}", *row[:2], f"{float(row[1]) / events * 1e9:.1f}", *row[2:]])
                    print(*rows[-1], file=sys.stderr, flush=True)
            head = ["events", "command", "CPU s", "CPU ns per event", "wall s", "peak MiB", ""]
            table(f"commands with --memory {args.memory}", head, rows)
        if "workers" in wanted and not args.processes:
            head = ["summary", "workers", "wall s", "CPU s of each worker", "CPU s of the parent", "speedup"]
            table("one pass, by workers", head, [[*row] for row in divided(run)])
        if "profile" in wanted:
            (folder / "profile").mkdir()
            many = job_files(
                folder / "profile", args.calls or 10_000, args.processes or (64, 1024, 10_240), "profile"
            )
            head = ["processes", "MiB", *(f"{step}: CPU time, peak MiB" for step in STEPS)]
            table("job files of mode profile", head, [[*opened(path)] for path in many])


if __name__ == "__main__":
    main()
