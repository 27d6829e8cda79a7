"""``ensio report``: write one HTML file about a run, which needs no network."""

from __future__ import annotations

import argparse
import json

from ensembles.cli.options import add_json, add_output, add_run, add_scale_arguments, open_run, parse_path

NAME = "report"
HELP = (
    "write one HTML file with the pictures and tables of a run, or of two runs compared; it needs no network"
)

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
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the report."""
    from ensembles.cli.bokeh_defaults import remember_defaults

    remember_defaults()
    from ensembles.viz.report import write_report

    if args.other is None:
        size_bytes = write_report(open_run(args, args.run), args.output)
    else:
        from ensembles.viz.report_comparison import write_comparison

        runs = [open_run(args, path, runs=2) for path in (args.run, args.other)]
        size_bytes = write_comparison(runs, args.output)
    if args.json:
        print(json.dumps({"report": args.output, "bytes": size_bytes}))
    else:
        from ensembles.model.units import bytes_text

        print(f"{args.output} ({bytes_text(size_bytes)}): open it in a browser")
    return 0
