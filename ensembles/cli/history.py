"""``ensio history``: the record of runs, and whether the latest run is another one."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ensembles.cli.compare import percent
from ensembles.cli.options import add_json, add_scale_arguments, open_run, parse_count, parse_path, warn
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text

if TYPE_CHECKING:
    from ensembles.history.check import Check
    from ensembles.history.store import History, StoredRun

NAME = "history"
HELP = "keep the summaries of runs, and check whether the latest run has changed"

DESCRIPTION = (
    "Keep the summaries of runs by experiment, in a SQLite file or in PostgreSQL, and check whether the "
    "latest run of an experiment differs from the runs before it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    subparsers = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)

    adder = _action(subparsers, "add", _add, "add runs to an experiment; a run that is there stays once")
    adder.add_argument("runs", metavar="RUN", nargs="+", type=parse_path("run"), help="run")
    adder.add_argument("--experiment", metavar="NAME", required=True, help="experiment: what is repeated")
    _add_labels(adder, "label of the runs, such as commit=1f3a or node=old; may be repeated")
    add_scale_arguments(adder)

    lister = _action(subparsers, "list", _list, "list experiments, or the runs of one")
    _add_choice(lister)
    add_json(lister)

    shower = _action(subparsers, "show", _show, "show the summaries of a run")
    shower.add_argument("id", metavar="ID", type=parse_count("a run", least=1), help="number of the run")
    add_json(shower)

    exporter = _action(subparsers, "export", _export, "print records as JSON, a line for each run")
    _add_choice(exporter)

    remover = _action(subparsers, "remove", _remove, "remove runs")
    remover.add_argument(
        "ids", metavar="ID", nargs="*", type=parse_count("a run", least=1), help="number of a run"
    )
    remover.add_argument("--experiment", metavar="NAME", help="all runs of this experiment")

    merger = _action(subparsers, "merge", _merge, "add all runs of another history")
    merger.add_argument("other", metavar="OTHER", type=parse_path("history"), help="file or URL")

    checker = _action(
        subparsers,
        "check",
        _check,
        "compare the latest run of each experiment with those before it; exit 1 on a regression",
    )
    checker.add_argument("--experiment", metavar="NAME", help="only this experiment")
    checker.add_argument(
        "--against",
        metavar="WHICH",
        type=_against,
        help="baseline: last:N, or NAME=VALUE for the runs with this label (default: last:20)",
    )
    checker.add_argument(
        "--margin",
        metavar="PERCENT",
        type=percent,
        default=0.1,
        help="largest change that does not count, in percent (default: 10%%)",
    )
    add_json(checker)


def _action(subparsers: Any, name: str, execute: Any, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}."
    )
    parser.add_argument(
        "--db",
        metavar="PLACE",
        default=os.environ.get("ENSIO_HISTORY"),
        help="SQLite file, or URL such as postgresql+psycopg://user@host/name (default: ENSIO_HISTORY)",
    )
    parser.set_defaults(act=execute)
    return parser


def _add_labels(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument(
        "--label", metavar="NAME=VALUE", type=_label, action="append", default=[], dest="labels", help=help
    )


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--experiment", metavar="NAME", help="only runs of this experiment")
    _add_labels(parser, "only runs with this label; may be repeated")
    parser.add_argument(
        "--last", metavar="N", type=parse_count("runs", least=1), help="only the latest N runs"
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f'"{text}" is not a label: write NAME=VALUE')
    return name, value


def _against(text: str) -> int | tuple[str, str]:
    """Parse a baseline: a number of runs, or a label."""
    what, _, number = text.partition(":")
    if what == "last" and number.isascii() and number.isdigit() and int(number) > 0:
        return int(number)
    if "=" in text:
        return _label(text)
    raise argparse.ArgumentTypeError(f'"{text}" is not a baseline: write last:20 or NAME=VALUE')


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if not args.db:
        raise EnsioError("which history? Name it with --db FILE or in the variable ENSIO_HISTORY")
    try:
        import alembic  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ModuleNotFoundError as missing:
        raise EnsioError(f"a history needs {missing.name}: pip install {missing.name}") from None
    code: int = args.act(args)
    return code


def _open(args: argparse.Namespace, make: bool = False) -> History:
    from ensembles.history.store import History

    return History(args.db, make)


def _add(args: argparse.Namespace) -> int:
    from ensembles.history.record import RunRecord

    labels = dict(args.labels)
    runs = [open_run(args, path, len(args.runs)) for path in args.runs]
    history = _open(args, make=True)
    for path, run in zip(args.runs, runs, strict=True):
        record = RunRecord.of_run(run)
        is_new = history.add(record, args.experiment, labels)
        done = "added to" if is_new else "is already in"
        print(sanitize_text(f"{path}: {done} {args.experiment}"))
        for note in record.notes:
            warn(f"note: {path}: {note}")
    return 0


def _list(args: argparse.Namespace) -> int:
    from ensembles.history.check import stored_json

    history = _open(args)
    if args.experiment is None and not args.labels and args.last is None:
        found = history.experiments()
        if args.json:
            rows = [
                {"experiment": one.name, "runs": one.runs, "latest": one.latest.isoformat()} for one in found
            ]
            print(json.dumps({"experiments": rows}, indent=2))
        else:
            print(
                _table(
                    ("experiment", "runs", "latest (UTC)"), [(e.name, e.runs, _when(e.latest)) for e in found]
                )
            )
        return 0
    runs = _chosen(args, history)
    if args.json:
        print(json.dumps({"runs": [stored_json(run) for run in runs]}, indent=2))
    else:
        print(_runs_text(runs))
    return 0


def _chosen(args: argparse.Namespace, history: History) -> list[StoredRun]:
    runs = history.runs(args.experiment, dict(args.labels), args.last)
    if not runs:
        raise EnsioError(
            "no run of the history is of this experiment and has these labels: see ensio history list"
        )
    return runs


def _runs_text(runs: Sequence[StoredRun]) -> str:
    rows = [
        (
            run.id,
            run.experiment,
            _when(run.start),
            f"{run.tasks:,}",
            f"{run.span_s:.4g} s",
            " ".join(f"{name}={value}" for name, value in run.labels.items()),
        )
        for run in runs
    ]
    return _table(("id", "experiment", "start (UTC)", "tasks", "span", "labels"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    from tabulate import tabulate

    cells = [[sanitize_text(str(cell)) for cell in row] for row in rows]
    table: str = tabulate(cells, head, "simple", disable_numparse=True)
    return table


def _when(start: Any) -> str:
    return f"{start:%Y-%m-%d %H:%M:%S}"


def _show(args: argparse.Namespace) -> int:
    from ensembles.model.units import bytes_text

    (record,) = _open(args).records([args.id])
    if args.json:
        print(json.dumps(_record_json(record), indent=2))
        return 0
    print(f"{sanitize_text(record.path)}: {sanitize_text(' '.join(record.command) or record.program)}")
    totals = record.totals
    print(
        f"{record.tasks:,} tasks on {record.nodes} nodes, {totals['span_s']:.4g} s, "
        f"{totals['calls']:,.0f} calls, {bytes_text(totals['bytes_written'])} written, "
        f"{bytes_text(totals['bytes_read'])} read"
    )
    rows = [
        (kind.layer, kind.op, f"{kind.calls:,}", f"{kind.time_s:.4g} s", f"{kind.max_s:.4g} s")
        for kind in record.kinds
    ]
    print(_table(("layer", "op", "calls", "time", "longest"), rows))
    for finding in record.findings:
        print(f"{finding.severity}: {finding.id}: {sanitize_text(finding.title)}")
    for note in record.notes:
        warn(f"note: {note}")
    return 0


def _record_json(record: Any) -> dict[str, Any]:
    """Return a record with the names of its fields, also of those that are stored without them."""
    import msgspec

    plain: dict[str, Any] = msgspec.structs.asdict(record)
    for name in ("kinds", "phases", "findings"):
        plain[name] = [msgspec.structs.asdict(entry) for entry in plain[name]]
    return plain


def _export(args: argparse.Namespace) -> int:
    from ensembles.history.check import stored_json

    history = _open(args)
    for run in _chosen(args, history):
        (record,) = history.records([run.id])
        print(json.dumps(stored_json(run) | {"record": _record_json(record)}))
    return 0


def _remove(args: argparse.Namespace) -> int:
    history = _open(args)
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
    added, known = _open(args, make=True).merge(other)
    print(f"{added} runs added, {known} were there already")
    return 0


def _check(args: argparse.Namespace) -> int:
    from ensembles.history.check import check

    history = _open(args)
    names = [args.experiment] if args.experiment else [one.name for one in history.experiments()]
    if not names:
        raise EnsioError("the history holds no run: add some with ensio history add")
    found = [check(history, name, _baseline(args, history, name), margin=args.margin) for name in names]
    if args.json:
        checks = [one.to_json() for one in found]
        changes = [{"experiment": one["experiment"]} | change for one in checks for change in one["changes"]]
        print(json.dumps({"verdict": _worst(found), "changes": changes, "experiments": checks}, indent=2))
    else:
        print("\n\n".join(_check_text(one) for one in found))
    return int(any(one.verdict == "regression" for one in found))


def _baseline(args: argparse.Namespace, history: History, experiment: str) -> list[StoredRun] | None:
    if args.against is None:
        return None
    if isinstance(args.against, int):
        return history.runs(experiment, last=args.against + 1)[:-1]
    return history.runs(experiment, dict([args.against]))


_ORDER = ("regression", "improvement", "too-few-runs", "ok")


def _worst(found: Sequence[Check]) -> str:
    return min((one.verdict for one in found), key=_ORDER.index)


def _check_text(found: Check) -> str:
    lines = [
        f"{sanitize_text(found.experiment)}: {found.verdict}: run {found.run.id} of {_when(found.run.start)} "
        f"against {len(found.baseline)} runs: {found.reason}"
    ]
    for change in found.changes:
        calls = f"{change.layer} {change.op}: " if change.op else ""
        lines.append(f"  {calls}{change.direction}: {change.sentence}")
    return "\n".join(lines)
