"""Add runs to a history: those below folders, and the counters of a site's archive of Darshan logs."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from glob import iglob

from ensembles.history.record import KindRecord, RunRecord
from ensembles.history.store import History
from ensembles.model.errors import EnsioError, SeveralRuns
from ensembles.model.units import bytes_text
from ensembles.readers.foreign.darshan.header import runs_of
from ensembles.readers.foreign.darshan.source import CountedLog, read_counters
from ensembles.readers.native.directory import holds_record
from ensembles.run.anonymise import hash_in_place, site_names
from ensembles.run.run import Run

AT_ONCE = 200
"""Logs that one transaction adds: so many are read again after an interruption."""

ONLY_COUNTED = "Darshan's counters: sums of calls, without the durations of single calls"


@dataclass
class Added:
    """What became of logs or runs."""

    # added, known: New runs, and those that were in the history before
    added: int = 0
    known: int = 0
    experiments: set[str] = field(default_factory=set)  # Experiments of the new runs
    damaged: list[str] = field(default_factory=list)  # One sentence for each that cannot be added

    @property
    def logs(self) -> int:
        """Logs that were looked at."""
        return self.added + self.known + len(self.damaged)

    def store(self, history: History, rows: list[tuple[RunRecord, str, Mapping[str, str]]]) -> None:
        """Add records in one transaction, and empty the list."""
        new = history.add_many(rows)
        self.added += sum(new)
        self.known += len(new) - sum(new)
        self.experiments |= {name for (_, name, _), is_new in zip(rows, new, strict=True) if is_new}
        rows.clear()


def find_logs(patterns: Iterable[str]) -> Iterator[str]:
    """Yield the paths that match patterns; ``**`` stands for any folders, and a folder for its logs."""
    for pattern in patterns:
        if os.path.isdir(pattern):
            pattern = os.path.join(pattern, "**", "*.darshan")
        yield from (os.path.abspath(path) for path in iglob(pattern, recursive=True) if os.path.isfile(path))


def add_logs(
    history: History,
    patterns: Iterable[str],
    experiment: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Iterator[Added]:
    """Add the runs of logs to a history; yields the same sums after each transaction.

    Those of which the history has a path are not read again, so that an interrupted command continues.
    """
    done = Added()
    known = history.paths()
    every = runs_of(dict.fromkeys(find_logs(patterns)))
    new = [run for run in every if known.isdisjoint(run)]
    done.known = len(every) - len(new)
    rows: list[tuple[RunRecord, str, Mapping[str, str]]] = []
    for _, log in read_counters(new):
        if isinstance(log, EnsioError):
            done.damaged.append(str(log))
            continue
        name = experiment or experiment_of(log)
        rows.append((record_of(log), name, {**(labels or {}), "job": log.job}))
        if len(rows) == AT_ONCE:
            done.store(history, rows)
            yield done
    done.store(history, rows)
    yield done


def experiment_of(log: CountedLog) -> str:
    """Name the experiment of a log."""
    return experiment_name(log.command.split(" ")[0], log.tasks, sum(_moved(log).values()))


def experiment_name(program: str, tasks: int, moved_bytes: float) -> str:
    """Name an experiment by executable, tasks, and bytes moved to a factor of four.

    Examples
    --------
    >>> from ensembles.history.additions import experiment_name
    >>> experiment_name("/home/user/ior", 8, 1e9)
    'ior, 8 tasks, about 1.00 GiB'
    """
    size = "no bytes" if moved_bytes <= 0 else f"about {bytes_text(4.0 ** round(math.log(moved_bytes, 4)))}"
    name = os.path.basename(program)[:160] or "unknown"
    return f"{name}, {'1 task' if tasks == 1 else f'{tasks} tasks'}, {size}"


def _cells(log: CountedLog) -> list[tuple[str, str, dict[str, int]]]:
    cells = log.summary.cells
    return [
        (
            log.summary.calls[int(number)].layer,
            log.summary.calls[int(number)].op,
            {name: int(column[row]) for name, column in cells.items()},
        )
        for row, number in enumerate(cells["call"])
    ]


def _moved(log: CountedLog) -> dict[str, int]:
    """Bytes read and written, without those that MPI-IO calls moved by POSIX calls."""
    moved = {"read": 0, "write": 0}
    for _, op, cell in _cells(log):
        if op in moved:
            moved[op] += cell["outer_moved"]
    return moved


def record_of(log: CountedLog) -> RunRecord:
    """Make the record of a log: no histograms, and rates by the time of a task in the calls."""
    cells, moved = _cells(log), _moved(log)
    kinds = [
        KindRecord(
            layer,
            op,
            cell["count"],
            cell["moved"] if op in moved else 0,
            cell["time_ns"] * 1e-9,
            0.0,
            max(cell["max_ns"], 0) * 1e-9,
            [],
            [],
        )
        for layer, op, cell in cells
    ]
    span_s = max(log.end_ns - log.start_ns, 0) * 1e-9
    totals = {
        "tasks": float(log.tasks),
        "calls": float(sum(cell["count"] for *_, cell in cells)),
        "bytes_read": float(moved["read"]),
        "bytes_written": float(moved["write"]),
        "files": float(log.files),
        "io_time_s": sum(cell["time_ns"] - cell["inner_ns"] for *_, cell in cells) * 1e-9,
        "wait_time_s": 0.0,
        "span_s": span_s,
    }
    time_s = {
        op: sum(cell["time_ns"] - cell["inner_ns"] for _, of, cell in cells if of == op) * 1e-9
        for op in moved
    }
    # Calls of threads overlap: the mean task is in them no longer than the run lasts.
    of_task_s = {op: min(each / log.tasks, span_s or math.inf) for op, each in time_s.items()}
    rates = {op: moved[op] / of_task_s[op] for op in moved if moved[op] and time_s[op]}
    notes = [ONLY_COUNTED]
    if log.has_segments:
        notes.append("the log also has DXT segments: ensio history add LOG --experiment NAME reads them")
    if log.is_partial:
        notes.append("Darshan's memory was full: some files are missing")
    facts = ["darshan", log.job, log.uid, log.command, log.tasks, log.start_ns, log.end_ns]
    facts += [round(1e9 * totals[name]) for name in ("calls", "io_time_s", "bytes_read", "bytes_written")]
    text = "\0".join(map(str, facts)).encode(errors="surrogateescape")
    command = log.command.split(" ") if log.command else []
    return RunRecord(
        identity=hashlib.blake2b(text, digest_size=16).hexdigest(),
        path=log.path,
        program=command[0] if command else "",
        job=log.job,
        command=command,
        start_unix_ns=log.start_ns,
        tasks=log.tasks,
        nodes=0,
        totals=totals,
        rates_bytes_per_s=rates,
        kinds=sorted(kinds, key=lambda kind: -kind.time_s),
        phases=[],
        findings=[],
        notes=notes,
        recorder="Darshan",
    )


def find_runs(folder: str) -> Iterator[str]:
    """Yield the run directories below a folder, sorted; links are not followed."""
    for path, folders, _ in os.walk(folder):
        folders.sort()
        if holds_record(path):
            folders.clear()
            yield path


def add_folders(
    history: History,
    folders: Iterable[str],
    open_run: Callable[[str], Run],
    experiment: str | None,
    labels: Mapping[str, str],
    jobs: dict[str, None],
) -> Iterator[Added]:
    """Add runs to a history, but for those of which it knows the path; yields the same sums each transaction.

    `experiment`: None: that of `experiment_name`. `jobs`: of numbers of jobs, those with a run are removed.
    """
    done, names = Added(), site_names()
    known = {run.path: run.labels.get("job", "") for run in history.runs()}
    rows: list[tuple[RunRecord, str, Mapping[str, str]]] = []
    paths = [path for folder in folders for path in find_runs(folder)]
    while paths:
        path = paths.pop(0)
        absolute = os.path.abspath(path)
        stored = absolute if names is None else names.path(absolute)
        try:
            if names is not None and os.path.isdir(path):
                hash_in_place(path, names)
            if stored in known:
                done.known += 1
                jobs.pop(known[stored].partition(".")[0], None)
                continue
            run = open_run(path)
            job = run.info.job
            jobs.pop(job.partition(".")[0], None)
            record = RunRecord.of_run(run)
        except SeveralRuns as several:
            paths[:0] = several.paths
            continue
        except EnsioError as error:
            done.damaged.append(str(error))
            continue
        moved = record.totals["bytes_read"] + record.totals["bytes_written"]
        name = experiment or experiment_name(record.program, record.tasks, moved)
        rows.append((record, name, {**labels, "job": job} if job else labels))
        if len(rows) == AT_ONCE:
            done.store(history, rows)
            yield done
    done.store(history, rows)
    yield done
