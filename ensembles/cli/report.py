"""``ensio report``: write one HTML file about a run, which needs no network."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_output,
    add_run,
    add_scale_arguments,
    filter_words,
    open_run,
    parse_path,
    selection_from_args,
)
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds

if TYPE_CHECKING:
    from ensembles.run.run import Run

DEFAULT_OUTPUT = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "other",
        metavar="RUN",
        nargs="?",
        type=parse_path("run"),
        help="a second run: the report compares it with the first, as ensio compare does",
    )
    add_output(parser, "FILE", "file to write (default: %(default)s)", what="report", default=DEFAULT_OUTPUT)
    add_json(parser, "print path and size in bytes as one JSON object")
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the report."""
    from ensembles.cli.bokeh_defaults import remember_defaults

    remember_defaults()
    from ensembles.viz.report.page import write_report

    selected = shlex.join(filter_words(args))
    if args.other is None:
        run = open_run(args, args.run)
        size_bytes = _write_part(args, run, selected) if selected else write_report(run, args.output)
    else:
        if selected:
            raise EnsioError(
                f"{selected} selects calls of one run, and two are named: leave out the second, or use "
                "ensio compare, which takes filters"
            )
        from ensembles.viz.report.comparison import write_comparison

        runs = [open_run(args, path, runs=2) for path in (args.run, args.other)]
        size_bytes = write_comparison(runs, args.output)
    if args.json:
        print(json.dumps({"report": args.output, "bytes": size_bytes}))
    else:
        from ensembles.model.units import bytes_text

        print(f"{args.output} ({bytes_text(size_bytes)}): open it in a browser")
    return 0


def _write_part(args: argparse.Namespace, run: Run, selected: str) -> int:
    """Write the report of the calls that match the filters; returns its size in bytes."""
    from ensembles.run.nothing_selected import not_nothing
    from ensembles.viz.report.page import write_report

    run.reading.need(Holds.ALL_CALLS, "filters choose among single calls (leave them out)")
    selection = selection_from_args(args).for_run(run)
    parts = not_nothing(run, selection, run.reading.chunks_for(selection))
    return write_report(run, args.output, parts, selected)
