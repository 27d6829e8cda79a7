"""``ensio files``: show the totals of each file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.totals_table import add_table_arguments, open_table, print_table

if TYPE_CHECKING:
    from ensembles.run.tables import FileTotals

NAME = "files"
HELP = "show calls, bytes, rates and time in I/O of each file"

_SHOWN = 28


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_table_arguments(parser, "files")


def execute(args: argparse.Namespace) -> int:
    """Print the files."""
    from ensembles.run.tables import totals_by_file

    run, filters = open_table(args)
    files = totals_by_file(run, args.sort, **filters)
    headers = ("file", "tasks")
    # The row of calls without a file does not count as a file.
    counted = sum(bool(file.path) for file in files)
    return print_table(args, run, files, "file", headers, _first_cells, counted=counted)


def _first_cells(file: FileTotals) -> tuple[str, str]:
    from ensembles.model.sanitize_text import sanitize_text

    path = sanitize_text(file.path) or "(no file)"
    return path if len(path) <= _SHOWN else f"...{path[3 - _SHOWN :]}", f"{file.tasks:,}"
