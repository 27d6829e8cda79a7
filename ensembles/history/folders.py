"""Add the runs below folders to a history: those of a site that records every job."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from ensembles.history.darshan import AT_ONCE, Added, experiment_name
from ensembles.history.record import RunRecord
from ensembles.history.store import History
from ensembles.model.errors import EnsioError, SeveralRuns
from ensembles.readers.native.directory import holds_record
from ensembles.run.anonymise import hash_in_place, site_names
from ensembles.run.run import Run


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
