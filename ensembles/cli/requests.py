"""``ensio requests``: show the sizes of reads and of writes of each API."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, given_filters, selected_run, show

NAME = "requests"
HELP = "show number, sizes and alignment of reads and of writes of each API"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, "sizes of each API", 4)
    parser.add_argument(
        "--align",
        metavar="SIZE",
        type=_size,
        help="boundary for misaligned requests, such as 4KiB (default: the stripe size of each file, else "
        "the block size of its file system)",
    )


def execute(args: argparse.Namespace) -> int:
    """Print the requests."""
    from ensembles.answers.requests import answer_requests
    from ensembles.run.nothing_selected import refuse_nothing

    run, selection = selected_run(args)
    found = answer_requests(run, args.align, args.limit, given_filters(args))
    refuse_nothing(run, selection, len(found.values["requests"]))
    return show(args, found)


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
