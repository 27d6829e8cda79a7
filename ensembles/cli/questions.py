"""The commands that answer a question about a run: a table of their arguments and of their answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ensembles.cli.options import (
    OldName,
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    filters_from_args,
    open_run,
    parse_bytes,
    parse_count,
    parse_share,
    selection_from_args,
    warn,
    warn_of,
)
from ensembles.cli.terminal import print_coloured
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.faces.answer import Answer
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters, Selection

Options = Mapping[str, Mapping[str, Any]]
"""Options of a command, each with its arguments for `argparse`."""


@dataclass(frozen=True)
class Question:
    """A command that prints an answer; it has what the module of any other command has."""

    answer: Callable[[argparse.Namespace], Answer]  # Makes the answer from the parsed arguments
    options: Options = field(default_factory=dict)  # Besides those that all have
    # (str, int) or None: What ``--limit`` counts, and how many there are by default. None: there is no limit.
    rows: tuple[str, int] | None = None
    limits_tables: bool = True  # Whether the limit is that of the rows of tables, not part of the question

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
    return cast("Filters", filters_from_args(args))


def show(args: argparse.Namespace, answer: Answer, limit: int | None = None) -> int:
    """Print an answer as text or JSON, and its notes."""
    from ensembles.faces.text import answer_text

    if args.json:
        import json

        print(json.dumps(answer.to_json(), indent=2, allow_nan=False))
    else:
        print_coloured(answer_text(answer.parts, limit))
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
    from ensembles.answers.ordinals import answer_ordinals, durations_by_ordinal

    run, selection = selected_run(args)
    found = durations_by_ordinal(run, selection, args.by)
    return answer_ordinals(found, run.notes)


def _rate(args: argparse.Namespace) -> Answer:
    from ensembles.answers.rate import answer_rate

    return answer_rate(*selected_run(args))


def _files(args: argparse.Namespace) -> Answer:
    from ensembles.answers.totals import answer_files

    return answer_files(*selected_run(args), args.by, _filters(args))


def _ranks(args: argparse.Namespace) -> Answer:
    from ensembles.answers.totals import answer_ranks

    return answer_ranks(*selected_run(args), args.by, _filters(args))


def _requests(args: argparse.Namespace) -> Answer:
    from ensembles.answers.requests import answer_requests

    return answer_requests(*selected_run(args), args.align, args.limit, _filters(args))


def _sites(args: argparse.Namespace) -> Answer:
    from ensembles.answers.sites import answer_sites

    return answer_sites(*selected_run(args))


def _pattern(args: argparse.Namespace) -> Answer:
    from ensembles.answers.pattern import answer_pattern

    return answer_pattern(*selected_run(args), args.limit)


def selected_ensemble(args: argparse.Namespace, transfers: bool = False) -> tuple[Run, Selection, Ensemble]:
    """Open the run; return it with the selection and the ensemble of the calls that the filters select.

    Where filters leave it open, these are the calls with most time; with `transfers`, of reads and writes.
    The notes of the run and of the ensemble go to standard error.
    """
    from ensembles.ensemble.main_ensemble import main_ensemble
    from ensembles.run.nothing_selected import refuse_nothing

    run = open_run(args, args.run)
    wanted = selection_from_args(args).for_run(run, from_summary=True)
    selection, ensemble = main_ensemble(run, wanted, "MiB" if args.per_byte else "call", transfers)
    refuse_nothing(run, wanted, ensemble.n)
    warn_of([*run.notes, *ensemble.notes])
    return run, selection, ensemble


def _modes(args: argparse.Namespace) -> Answer:
    from ensembles.answers.modes import answer_modes

    if (args.maximum is None) != (args.tasks is None):
        raise EnsioError("a fair share needs both --maximum and --tasks: give the other one too")
    return answer_modes(*selected_ensemble(args), args.maximum, args.tasks)


def _tail(args: argparse.Namespace) -> Answer:
    from ensembles.answers.tail import BacktestAnswer, TailAnswer
    from ensembles.ensemble.main_ensemble import tasks_of

    _, _, ensemble = selected_ensemble(args)
    if not {"duration", "rate"}.isdisjoint(filters_from_args(args)):
        warn(
            "note: these calls were chosen by their durations or rates: the slowest of them is not the "
            "slowest call of a task; leave out these filters to ask for that"
        )
    if args.backtest:
        return BacktestAnswer(**vars(ensemble.backtest(args.tasks, level=args.level)))
    return TailAnswer(**vars(ensemble.tail(args.tasks or tasks_of(ensemble), level=args.level)))


def _split(args: argparse.Namespace) -> Answer:
    from ensembles.answers.split import SplitAnswer

    ensemble = selected_ensemble(args, transfers=True)[2]
    return SplitAnswer(**vars(ensemble.split(args.calls, args.tasks, level=args.level)))


def _calls(text: str) -> tuple[int, ...]:
    number = parse_count("calls", least=1)
    return tuple(number(part.strip()) for part in text.split(","))


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
_OLD_BY = {"action": OldName, "new": "--by"}
_ALIGN = {
    "metavar": "SIZE",
    "type": parse_bytes("boundary"),
    "help": "boundary for misaligned requests, such as 4KiB (default: the stripe size of each file, else the "
    "block size of its file system)",
}
_QUANTITY = {
    "choices": ("duration", "flight"),
    "default": "duration",
    "help": "duration: the time that calls block (default); flight: that of non-blocking requests from post "
    "to completion",
}


def _tasks(of: str) -> Mapping[str, Any]:
    return {"metavar": "N", "type": parse_count("tasks", 1), "help": f"number of tasks{of}"}


_FAIR_SHARE: Options = {
    "--maximum": {
        "metavar": "RATE",
        "type": parse_bytes("maximum", "/s"),
        "help": "aggregate rate that the file system can reach, such as 16GB/s; marks the fair share of a "
        "task (default: none)",
    },
    "--limit": {"dest": "maximum", "type": parse_bytes("maximum", "/s"), "help": argparse.SUPPRESS},
    "--tasks": _tasks(" that share the maximum"),
}
"""``--limit`` is the name of the maximum until 0.1."""


_LEVEL = {
    "metavar": "P",
    "type": parse_share,
    "default": 0.9,
    "help": "level of the prediction intervals, between 0 and 1 (default: %(default)s)",
}
_BACKTEST = {
    "action": "store_true",
    "help": "cross-validate: leave out phases or ranks and predict them from the rest, predict each phase "
    "from those before it, and print the coverage of the intervals",
}
_CALLS = {
    "metavar": "K,K,...",
    "type": _calls,
    "default": (1, 2, 4, 8),
    "help": "numbers of calls that replace each call (default: 1,2,4,8)",
}

QUESTIONS = {
    "phases": Question(_phases, {"--by": _BY}, ("phases", 50)),
    "ordinals": Question(_ordinals, {"--by": _WITHIN, "--within": _OLD_BY}, ("ordinals", 40)),
    "rate": Question(_rate),
    "files": Question(_files, {"--by": _SORT, "--sort": _OLD_BY}, ("files", 20)),
    "ranks": Question(_ranks, {"--by": _SORT, "--sort": _OLD_BY}, ("ranks", 20)),
    "requests": Question(_requests, {"--align": _ALIGN}, ("sizes of each API", 4), limits_tables=False),
    "sites": Question(_sites, rows=("sites", 20)),
    "pattern": Question(_pattern, rows=("groups of tasks, and of files", 10)),
    "modes": Question(_modes, {"--quantity": _QUANTITY, **_FAIR_SHARE}),
    "tail": Question(
        _tail,
        {
            "--tasks": _tasks(", each with one call (default: that of the run)"),
            "--level": _LEVEL,
            "--backtest": _BACKTEST,
            "--quantity": _QUANTITY,
        },
    ),
    "split": Question(
        _split,
        {
            "--calls": _CALLS,
            "--tasks": _tasks(" that wait for each other (default: that of the selected calls)"),
            "--level": _LEVEL,
        },
    ),
}
"""The commands by name."""
