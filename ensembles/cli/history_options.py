"""Arguments and texts that the actions of ``ensio history`` share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import parse_count
from ensembles.files.site_settings import setting

if TYPE_CHECKING:
    from ensembles.history.store import History


def add_action(subparsers: Any, name: str, execute: Any, help: str) -> argparse.ArgumentParser:
    """Add an action with the place of the history."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}."
    )
    add_place(parser)
    parser.set_defaults(act=execute)
    return parser


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add ``--db``."""
    parser.add_argument(
        "--db",
        metavar="PLACE",
        default=setting("ENSIO_HISTORY"),
        help="SQLite file, or URL such as postgresql+psycopg://user@host/name (default: ENSIO_HISTORY)",
    )


def add_labels(parser: argparse.ArgumentParser, help: str) -> None:
    """Add ``--label``."""
    parser.add_argument(
        "--label",
        metavar="NAME=VALUE",
        type=parse_label,
        action="append",
        default=[],
        dest="labels",
        help=help,
    )


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose runs."""
    parser.add_argument("--experiment", metavar="NAME", help="only runs of this experiment")
    add_labels(parser, "only runs with this label; may be repeated")
    parser.add_argument(
        "--last", metavar="N", type=parse_count("runs", least=1), help="only the latest N runs"
    )


def parse_label(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f'"{text}" is not a label: write NAME=VALUE')
    return name, value


def open_history(args: argparse.Namespace, first: str | None = None) -> History:
    """Open the history that the arguments name; make it for the readers of a first run, if one is given."""
    from ensembles.files.readership import OWNER, find_readership
    from ensembles.history.store import History

    readers = OWNER if first is None else find_readership(first)
    return History(args.db, make=first is not None, readers=readers)


def when(start: Any) -> str:
    """Format a time."""
    return f"{start:%Y-%m-%d %H:%M:%S}"
