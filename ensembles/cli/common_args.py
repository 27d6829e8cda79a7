"""Arguments that several commands share, and kinds of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_MAX_DIGITS = 18
"""Of a count: so many fit into 64 bits."""


def add_run(parser: argparse.ArgumentParser, what: str = "run directory, spool or trace.h5") -> None:
    """Declare the run that a command looks at."""
    parser.add_argument("run", metavar="RUN", type=parse_path("run"), help=what)


def add_output(
    parser: argparse.ArgumentParser,
    metavar: str,
    help: str,
    *,
    what: str = "file",
    default: str | None = None,
    required: bool = False,
) -> None:
    """Declare where the result goes; `what`: what it is that has no name if the path is empty."""
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
    """Declare where a command records to."""
    add_output(parser, metavar, "run directory (default: a new one in this folder)", what="run directory")


def add_json(parser: argparse.ArgumentParser, help: str = "one JSON object, in SI units") -> None:
    """Declare that the result is for programs."""
    parser.add_argument("--json", action="store_true", help=help)


def add_limit(
    parser: argparse.ArgumentParser,
    what: str,
    default: int | None,
    help: str = "rows of the table (default: %(default)s)",
) -> None:
    """Declare how many rows a table has at most."""
    parser.add_argument("--limit", metavar="N", type=parse_count(what, least=0), default=default, help=help)


def parse_path(what: str) -> Callable[[str], str]:
    """The check of a path: an empty one would mean the current folder, which nobody asked for."""

    def checked(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"the {what} has no name")
        return text

    return checked


def parse_count(what: str, least: int) -> Callable[[str], int]:
    """The check and conversion of a whole number."""

    def converted(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise argparse.ArgumentTypeError(f'"{text}" is no number of {what}')
        if len(text) > _MAX_DIGITS:
            raise argparse.ArgumentTypeError(f"a number of {len(text)} digits is too large")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return int(text)

    return converted


def parse_level(text: str) -> float:
    """The check and conversion of the probability of an interval."""
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f'"{text[:20]}" is no probability between 0 and 1, such as 0.9')
    return level
