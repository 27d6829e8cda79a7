"""Arguments that several commands share, and their types."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_RUN = "run directory, spool, job file, trace.h5, or a log of another tool (docs/user/importing.md)"

_MAX_DIGITS = 18
"""Of a count: any number of so many digits fits into 64 bits."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run that a command reads."""
    parser.add_argument("run", metavar="RUN", type=parse_path("run"), help=_RUN)


def add_output(
    parser: argparse.ArgumentParser,
    metavar: str,
    help: str,
    *,
    what: str = "file",
    default: str | None = None,
    required: bool = False,
) -> None:
    """Declare the output path.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    metavar, help : str
        As for `argparse`.
    what : str
        Noun for the output in the message about an empty path.
    default : str, optional
    required : bool
    """
    parser.add_argument(
        "-o",
        "--output",
        metavar=metavar,
        type=parse_path(what),
        default=default,
        required=required,
        help=help,
    )


def add_new_run_directory(parser: argparse.ArgumentParser, metavar: str = "RUN") -> None:
    """Declare the run directory that a command creates."""
    add_output(
        parser,
        metavar,
        "run directory to create (default: a new one in the current folder)",
        what="run directory",
    )


def add_json(parser: argparse.ArgumentParser, help: str = "print one JSON object, in SI units") -> None:
    """Declare the option for output that programs read."""
    parser.add_argument("--json", action="store_true", help=help)


def add_limit(
    parser: argparse.ArgumentParser,
    what: str,
    default: int | None,
    help: str = "maximum number of rows of the table (default: %(default)s)",
) -> None:
    """Declare the maximum number of rows of a table."""
    parser.add_argument("--limit", metavar="N", type=parse_count(what, least=0), default=default, help=help)


def parse_path(what: str) -> Callable[[str], str]:
    """Return a parser of paths that rejects the empty path, which would mean the current folder."""

    def checked(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"the {what} has no name")
        return text

    return checked


def parse_count(what: str, least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers that rejects numbers below `least`."""

    def converted(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise argparse.ArgumentTypeError(f'"{text}" is not a number of {what}')
        if len(text) > _MAX_DIGITS:
            raise argparse.ArgumentTypeError(f"a number with {len(text)} digits is too large")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return int(text)

    return converted


def parse_level(text: str) -> float:
    """Parse the level of an interval, a probability between 0 and 1."""
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(
            f'"{text[:20]}" is not a probability: write a number between 0 and 1, such as 0.9'
        )
    return level
