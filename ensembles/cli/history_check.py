"""``ensio history check``, ``acknowledge`` and ``context``: judge runs by those before them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ensembles.cli.history_options import add_action, add_labels, open_history, parse_label, when
from ensembles.cli.options import add_json, add_old_names, add_output, parse_count, parse_share
from ensembles.cli.questions import show
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text

if TYPE_CHECKING:
    from ensembles.history.store import History, StoredRun


def add_check_actions(subparsers: Any) -> None:
    """Declare the actions."""
    checker = add_action(
        subparsers,
        "check",
        _check,
        "compare the latest runs of each experiment with those before them; exit 1 on a regression",
    )
    checker.add_argument("--experiment", metavar="NAME", help="only this experiment")
    checker.add_argument(
        "--last",
        metavar="N",
        type=parse_count("runs", least=1),
        help="judge the latest N runs together (default: the latest run, the latest 3 and the latest 7)",
    )
    checker.add_argument(
        "--against",
        metavar="WHICH",
        type=_against,
        help="baseline: last:N, or label=VALUE or NAME=VALUE for the runs with this label (default: last:20)",
    )
    checker.add_argument(
        "--margin",
        metavar="PERCENT",
        type=parse_share,
        default=0.1,
        help="largest change of numbers of calls that does not count, in percent (default: 10%%)",
    )
    add_output(checker, "FILE", "write JUnit XML too", what="JUnit file")
    checker.add_argument(
        "--format",
        choices=("text", "markdown"),
        default="text",
        help="what is printed: markdown for a pull request (default: %(default)s)",
    )
    add_old_names(checker, {"--junit": "--output", "--markdown": "--format markdown"})
    add_json(checker)

    knower = add_action(
        subparsers, "acknowledge", _acknowledge, "accept a known change: its runs become the new baseline"
    )
    knower.add_argument("--experiment", metavar="NAME", required=True, help="experiment that changed")
    knower.add_argument("--reason", metavar="TEXT", required=True, help="why runs differ from now on")
    knower.add_argument(
        "--since",
        metavar="ID",
        type=parse_count("a run", least=1),
        help="first run of the change (default: what check finds, else the latest run)",
    )

    placer = add_action(
        subparsers, "context", _context, "show where one run lies among the others, from one run on"
    )
    placer.add_argument("id", metavar="ID", type=parse_count("a run", least=1), help="number of the run")
    placer.add_argument(
        "--last", metavar="DAYS", type=parse_count("days", least=1), help="only runs of the DAYS before it"
    )
    add_old_names(placer, {"--days": "--last"})
    add_labels(placer, "among all runs with this label, of any experiment; may be repeated")
    add_json(placer)


def _against(text: str) -> int | tuple[str, str]:
    """Parse a baseline: a number of runs, or a label."""
    what, _, number = text.partition(":")
    if what == "last" and number.isascii() and number.isdigit() and int(number) > 0:
        return int(number)
    if "=" in text:
        return parse_label(text)
    raise argparse.ArgumentTypeError(f'"{text}" is not a baseline: write last:20 or NAME=VALUE')


def _check(args: argparse.Namespace) -> int:
    from ensembles.answers.history import answer_checks, junit_xml, markdown
    from ensembles.history.check import check, control_false_alarms

    history = open_history(args)
    names = [args.experiment] if args.experiment else [one.name for one in history.experiments()]
    if not names:
        raise EnsioError("the history holds no run: add some with ensio history add")
    found = control_false_alarms(
        [
            check(
                history,
                name,
                _baseline(args, history, name),
                margin=args.margin,
                last=args.last,
                compared=args.json,
            )
            for name in names
        ]
    )
    if args.output:
        from ensembles.files.atomic_write import atomic_write

        with atomic_write(args.output) as descriptor, open(descriptor, "wb", closefd=False) as file:
            file.write(junit_xml(found))
    if args.format == "markdown" and not args.json:
        print(markdown(found))
    else:
        show(args, answer_checks(found))
    return int(any(one.fails for one in found))


def _baseline(args: argparse.Namespace, history: History, experiment: str) -> list[StoredRun] | int | None:
    if args.against is None or isinstance(args.against, int):
        return args.against
    return history.runs(experiment, dict([args.against]))


def _acknowledge(args: argparse.Namespace) -> int:
    from ensembles.history.check import check

    history = open_history(args)
    runs = history.runs(args.experiment)
    since = args.since
    if since is None:
        found = check(history, args.experiment, compared=False)
        begun = [change.since_run for change in found.changes if change.since_run is not None]
        since = min(begun, default=found.run.id)
    run = next((one for one in runs if one.id == since), None)
    if run is None:
        raise EnsioError(
            f"{args.experiment} has no run {since}: see ensio history list --experiment {args.experiment}"
        )
    history.acknowledge(args.experiment, run, args.reason)
    after = sum(one.start >= run.start for one in runs)
    print(
        f"{sanitize_text(args.experiment)}: the baseline begins with run {run.id} of {when(run.start)}, "
        f"{after} runs: {sanitize_text(args.reason)}"
    )
    return 0


def _context(args: argparse.Namespace) -> int:
    from ensembles.answers.history import answer_context
    from ensembles.history.context import place_run

    return show(args, answer_context(place_run(open_history(args), args.id, dict(args.labels), args.last)))
