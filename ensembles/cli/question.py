"""What commands that answer a question about a run share: arguments, the run, the output."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, cast

from ensembles.cli.options import (
    FILTERS,
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn_of,
)

if TYPE_CHECKING:
    from ensembles.answers.answer import Answer
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters, Selection


def add_question(parser: argparse.ArgumentParser, rows: str | None = None, limit: int | None = None) -> None:
    """Declare the run, the filters and the output.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    rows : str, optional
        What the rows of the table are. Default: there is no limit.
    limit : int, optional
        Most rows, unless the user gives another number.
    """
    add_run(parser)
    if rows is not None:
        add_limit(parser, rows, limit)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def selected_run(args: argparse.Namespace) -> tuple[Run, Selection]:
    """Open the run; return it with the selection of the filters."""
    selection = selection_from_args(args)
    return open_run(args, args.run), selection


def given_filters(args: argparse.Namespace) -> Filters:
    """Return the filters that the user gave, by name."""
    given: Any = {name: getattr(args, name) for name in FILTERS if getattr(args, name)}
    return cast("Filters", given)


def add_sort(parser: argparse.ArgumentParser) -> None:
    """Declare the order of a table of totals."""
    parser.add_argument(
        "--sort",
        choices=("time", "bytes", "calls"),
        default="time",
        help="what to sort by, the largest first (default: time in I/O)",
    )


def show(args: argparse.Namespace, answer: Answer, limit: int | None = None) -> int:
    """Print an answer as text or JSON, and its notes.

    Parameters
    ----------
    args : argparse.Namespace
    answer : Answer
    limit : int, optional
        Most rows of a table of the text. Default: all.

    Returns
    -------
    int
        Exit code.
    """
    from ensembles.faces.text import answer_text

    print(json.dumps(answer.to_dict(), indent=2) if args.json else answer_text(answer.parts, limit))
    warn_of(answer.notes)
    return 0
