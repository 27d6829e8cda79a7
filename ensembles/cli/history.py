"""``ensio history``: the record of runs, and whether the latest run is another one."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.cli.history_check import add_check_actions
from ensembles.cli.history_options import add_action, add_choice, add_labels, open_history
from ensembles.cli.options import (
    add_json,
    add_scale_arguments,
    open_run,
    parse_count,
    parse_path,
    warn_of,
)
from ensembles.cli.questions import show
from ensembles.files.untrusted import Reading
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import count_text

if TYPE_CHECKING:
    from ensembles.history.additions import Added
    from ensembles.history.store import History, StoredRun

DESCRIPTION = (
    "Keep the summaries of runs by experiment, in a SQLite file or in PostgreSQL, and check whether the "
    "latest run of an experiment differs from the runs before it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    subparsers = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)

    adder = add_action(subparsers, "add", _add, "add runs to an experiment; a run that is there stays once")
    adder.add_argument(
        "runs", metavar="RUN", nargs="*", type=parse_path("run"), help="run, or a folder with runs below it"
    )
    adder.add_argument(
        "--jobs",
        metavar="FILE",
        type=parse_path("list of jobs"),
        help="numbers of batch jobs, the first word of each line; those of which the folders hold no run are "
        "named",
    )
    adder.add_argument(
        "--darshan",
        metavar="GLOB",
        nargs="+",
        default=[],
        help="add the counters of Darshan logs: patterns such as 'logs/**/*.darshan', or folders; logs "
        "that the history has are not read again",
    )
    adder.add_argument(
        "--experiment",
        metavar="NAME",
        help="experiment: what is repeated (default for folders and Darshan logs: executable, tasks and "
        "bytes moved)",
    )
    add_labels(adder, "label of the runs, such as commit=1f3a or node=old; may be repeated")
    add_scale_arguments(adder)

    lister = add_action(subparsers, "list", _list, "list experiments, or the runs of one")
    add_choice(lister)
    add_json(lister)

    shower = add_action(subparsers, "show", _show, "show the summaries of a run")
    which = shower.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "id", metavar="ID", nargs="?", type=parse_count("a run", least=1), help="number of the run"
    )
    which.add_argument(
        "--predictions", action="store_true", help="instead, what ensio try predicted and measured"
    )
    add_json(shower)

    exporter = add_action(subparsers, "export", _export, "print records as JSON, a line for each run")
    add_choice(exporter)

    remover = add_action(subparsers, "remove", _remove, "remove runs")
    remover.add_argument(
        "ids", metavar="ID", nargs="*", type=parse_count("a run", least=1), help="number of a run"
    )
    remover.add_argument("--experiment", metavar="NAME", help="all runs of this experiment")

    merger = add_action(subparsers, "merge", _merge, "add all runs of another history")
    merger.add_argument("other", metavar="OTHER", type=parse_path("history"), help="file or URL")

    add_action(subparsers, "upgrade", _upgrade, "bring the tables of an earlier ensio up to date")
    add_check_actions(subparsers)
    add_output_actions(subparsers)


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if not args.db:
        raise EnsioError("which history? Name it with --db FILE or in the variable ENSIO_HISTORY")
    code: int = args.act(args)
    return code


def _add(args: argparse.Namespace) -> int:
    from ensembles.history.record import RunRecord

    labels = dict(args.labels)
    if bool(args.runs) == bool(args.darshan):
        raise EnsioError("which runs? Name them, or Darshan logs with --darshan GLOB")
    if args.darshan:
        return _add_darshan(args, labels)
    if args.jobs or any(_has_runs_below(path) for path in args.runs):
        return _add_folders(args, labels)
    if args.experiment is None:
        raise EnsioError(
            "which experiment do these runs repeat? Name it with --experiment NAME (--darshan LOG: by "
            "executable and size)"
        )
    records = [RunRecord.of_run(open_run(args, path, len(args.runs))) for path in args.runs]
    history = open_history(args, first=args.runs[0])
    for path, record in zip(args.runs, records, strict=True):
        is_new = history.add(record, args.experiment, labels)
        done = "added to" if is_new else "is already in"
        print(sanitize_text(f"{path}: {done} {args.experiment}"))
        warn_of(f"{path}: {note}" for note in record.caveats)
    return 0


def _add_darshan(args: argparse.Namespace, labels: dict[str, str]) -> int:
    from ensembles.history.additions import add_logs, find_logs

    history = open_history(args, first=next(find_logs(args.darshan), ""))
    done = _reported(add_logs(history, args.darshan, args.experiment, labels))
    if not done.logs:
        raise EnsioError(f"no file matches {' '.join(args.darshan)}: quote the pattern, and see its folder")
    print(
        f"{done.added:,} logs added to {len(done.experiments):,} experiments, {done.known:,} were there "
        f"already, {len(done.damaged):,} damaged"
    )
    if not done.added and not done.known:
        raise EnsioError("no log could be read")
    return 0


def _has_runs_below(path: str) -> bool:
    from ensembles.history.additions import find_runs

    return os.path.isdir(path) and next(find_runs(path), path) != path


def _add_folders(args: argparse.Namespace, labels: dict[str, str]) -> int:
    from ensembles.history.additions import add_folders, find_runs

    first = next((run for folder in args.runs for run in find_runs(folder)), None)
    if first is None:
        raise EnsioError(f"no folder below {', '.join(args.runs)} holds a run")
    jobs: dict[str, None] = {}
    if args.jobs:
        with Reading(args.jobs), open(args.jobs, encoding="utf-8", errors="replace") as lines:
            jobs = {words[0]: None for line in lines if (words := line.split())}
    history = open_history(args, first=first)
    opened = partial(open_run, args)
    done = _reported(add_folders(history, args.runs, opened, args.experiment, labels, jobs))
    print(
        f"{count_text(done.added, 'run')} added to {count_text(len(done.experiments), 'experiment')}, "
        f"{done.known:,} were there already, {len(done.damaged):,} not added"
    )
    if jobs:
        print(sanitize_text(f"{count_text(len(jobs), 'job')} not recorded: {', '.join(jobs)}"))
    return 0


def _reported(additions: Iterator[Added]) -> Added:
    """Name what is not added, and return the last sum."""
    said = 0
    for done in additions:
        warn_of(done.damaged[said:])
        said = len(done.damaged)
    return done


def _list(args: argparse.Namespace) -> int:
    from ensembles.answers.history import answer_experiments, answer_runs

    history = open_history(args)
    if args.experiment is None and not args.labels and args.last is None:
        return show(args, answer_experiments(history.experiments()))
    return show(args, answer_runs(_chosen(args, history)))


def _chosen(args: argparse.Namespace, history: History) -> list[StoredRun]:
    runs = history.runs(args.experiment, dict(args.labels), args.last)
    if not runs:
        raise EnsioError(
            "no run of the history is of this experiment and has these labels: see ensio history list"
        )
    return runs


def _show(args: argparse.Namespace) -> int:
    from ensembles.answers.history import answer_predictions, answer_record

    if args.predictions:
        return show(args, answer_predictions(open_history(args).runs()))
    (record,) = open_history(args).records([args.id])
    return show(args, answer_record(record))


def _export(args: argparse.Namespace) -> int:
    from ensembles.answers.history import record_json
    from ensembles.history.check import stored_json

    history = open_history(args)
    for run in _chosen(args, history):
        for record in history.readable([run]).values():
            print(json.dumps(stored_json(run) | {"record": record_json(record)}))
    return 0


def _remove(args: argparse.Namespace) -> int:
    history = open_history(args)
    if bool(args.ids) == (args.experiment is not None):
        raise EnsioError("which runs? Name their numbers, or --experiment for all of its runs")
    ids = args.ids or [run.id for run in history.runs(args.experiment)]
    removed = history.remove(ids)
    print(f"{removed} runs removed")
    if removed < len(ids) or not removed:
        raise EnsioError("some of the named runs are not in the history: see ensio history list")
    return 0


def _merge(args: argparse.Namespace) -> int:
    from ensembles.history.store import History

    other = History(args.other)
    added, known = open_history(args, first=args.other).merge(other)
    print(f"{added} runs added, {known} were there already")
    return 0


def _upgrade(args: argparse.Namespace) -> int:
    from ensembles.history.schema import SCHEMA
    from ensembles.history.store import History

    history = History(args.db, upgrade=True)
    print(f"{sanitize_text(history.name)} has the schema {SCHEMA}")
    return 0


def add_output_actions(subparsers: Any) -> None:
    """Declare the actions."""
    writer = add_action(
        subparsers, "site", _site, "write the history as static pages for a web server without Python"
    )
    writer.add_argument("folder", metavar="DIR", type=parse_path("folder"), help="folder of the pages")
    meter = add_action(
        subparsers, "metrics", _metrics, "print the latest run of each experiment as OpenMetrics text"
    )
    meter.add_argument(
        "-o", "--output", metavar="FILE", type=parse_path("metrics"), help="write a file (default: print)"
    )


def _site(args: argparse.Namespace) -> int:
    from ensembles.viz.history.pages import write_site

    written = write_site(open_history(args), args.folder)
    print(f"{written[0]}: {count_text(len(written) - 1, 'experiment')}")
    return 0


def _metrics(args: argparse.Namespace) -> int:
    from ensembles.files.atomic_write import atomic_write
    from ensembles.files.readership import Readership
    from ensembles.history.context import openmetrics

    text = openmetrics(open_history(args))
    if args.output is None:
        print(text, end="")
        return 0
    with (
        atomic_write(args.output, Readership(everyone=True)) as descriptor,
        open(descriptor, "wb", closefd=False) as file,
    ):
        file.write(text.encode())
    return 0
