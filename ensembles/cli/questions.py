"""The commands that answer a question about a run: a table of their arguments and of their answers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

Options = Mapping[str, Mapping[str, Any]]
"""Options of a command, each with its arguments for `argparse`."""


@dataclass(frozen=True)
class Question:
    """A command that prints an answer; it has what the module of any other command has.

    Attributes
    ----------
    HELP : str
    answer : callable
        Makes the answer from the parsed arguments.
    options : mapping
        Besides those that all have.
    rows : (str, int) or None
        What ``--limit`` counts, and how many there are by default. None: there is no limit.
    limits_tables : bool
        Whether the limit is that of the rows of tables, not part of the question.
    """

    HELP: str
    answer: Callable[[argparse.Namespace], Answer]
    options: Options = field(default_factory=dict)
    rows: tuple[str, int] | None = None
    limits_tables: bool = True

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""
        add_question(parser, self.options, self.rows)

    def execute(self, args: argparse.Namespace) -> int:
        """Print the answer."""
        return show(args, self.answer(args), args.limit if self.rows and self.limits_tables else None)


def add_question(parser: argparse.ArgumentParser, options: Options, rows: tuple[str, int] | None) -> None:
    """Declare the run, options, the filters and the output."""
    add_run(parser)
    for name, how in options.items():
        parser.add_argument(name, **how)
    if rows is not None:
        add_limit(parser, *rows)
    add_json(parser, "print one JSON object, in SI units, with all rows")
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def selected_run(args: argparse.Namespace) -> tuple[Run, Selection]:
    """Open the run; return it with the selection of the filters."""
    selection = selection_from_args(args)
    return open_run(args, args.run), selection


def _filters(args: argparse.Namespace) -> Filters:
    """Return the filters that the user gave, by name."""
    given: Any = {name: getattr(args, name) for name in FILTERS if getattr(args, name)}
    return cast("Filters", given)


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


def _phases(args: argparse.Namespace) -> Answer:
    from ensembles.answers.phases import answer_phases
    from ensembles.run.nothing_selected import refuse_nothing

    run, selection = selected_run(args)
    found = answer_phases(run, selection, args.by)
    refuse_nothing(run, selection, len(found.phases) + (0 if selection.phases else found.outside))
    return found


def _ordinals(args: argparse.Namespace) -> Answer:
    from ensembles.answers.ordinals import answer_ordinals
    from ensembles.run.ordinals import durations_by_ordinal

    run, selection = selected_run(args)
    found = durations_by_ordinal(run, selection, args.within)
    return answer_ordinals(found, run.notes)


def _rate(args: argparse.Namespace) -> Answer:
    from ensembles.answers.rate import answer_rate

    return answer_rate(*selected_run(args))


def _files(args: argparse.Namespace) -> Answer:
    from ensembles.answers.totals import answer_files

    return answer_files(*selected_run(args), args.sort, _filters(args))


def _ranks(args: argparse.Namespace) -> Answer:
    from ensembles.answers.totals import answer_ranks

    return answer_ranks(*selected_run(args), args.sort, _filters(args))


def _requests(args: argparse.Namespace) -> Answer:
    from ensembles.answers.requests import answer_requests

    return answer_requests(*selected_run(args), args.align, args.limit, _filters(args))


def _sites(args: argparse.Namespace) -> Answer:
    from ensembles.answers.sites import answer_sites

    return answer_sites(*selected_run(args))


def _size(text: str) -> int:
    from ensembles.model.errors import EnsioError
    from ensembles.model.filters import parse_size

    try:
        size = parse_size(text)
    except EnsioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size < 1:
        raise argparse.ArgumentTypeError("the boundary must be at least 1 B")
    return size


_BY = {
    "choices": ("named", "barriers", "steps"),
    "help": "source of the phases: names that the program sets, barriers, or steps of I/O separated by gaps "
    "(default: the first of these that the run has)",
}
_WITHIN = {
    "choices": ("file", "phase"),
    "default": "file",
    "help": "count the calls of a task and operation on each file or in each phase (default: file)",
}
_SORT = {
    "choices": ("time", "bytes", "calls"),
    "default": "time",
    "help": "what to sort by, the largest first (default: time in I/O)",
}
_ALIGN = {
    "metavar": "SIZE",
    "type": _size,
    "help": "boundary for misaligned requests, such as 4KiB (default: the stripe size of each file, else the "
    "block size of its file system)",
}

QUESTIONS = {
    "phases": Question(
        "list the phases of a run: time, bytes, idle time of tasks, slowest rank",
        _phases,
        {"--by": _BY},
        ("phases", 50),
    ),
    "ordinals": Question(
        "show durations by call index (first, second, ... call of a task on a file) and their trend",
        _ordinals,
        {"--within": _WITHIN},
        ("ordinals", 40),
    ),
    "rate": Question("show the aggregate data rate over time, and its plateaus", _rate),
    "files": Question(
        "show calls, bytes, rates and time in I/O of each file", _files, {"--sort": _SORT}, ("files", 20)
    ),
    "ranks": Question(
        "show calls, bytes, rates, time in I/O and time waiting of each rank",
        _ranks,
        {"--sort": _SORT},
        ("ranks", 20),
    ),
    "requests": Question(
        "show number, sizes and alignment of reads and of writes of each API",
        _requests,
        {"--align": _ALIGN},
        ("sizes of each API", 4),
        limits_tables=False,
    ),
    "sites": Question(
        "show which places in the program led to the calls, with their time", _sites, rows=("sites", 20)
    ),
}
"""The commands by name."""
