"""``ensio ranks``: show the totals of each rank."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.totals_table import add_table_arguments, open_table, print_table

if TYPE_CHECKING:
    from ensembles.run.tables import RankTotals

NAME = "ranks"
HELP = "show calls, bytes, rates, time in I/O and time waiting of each rank"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_table_arguments(parser, "ranks")


def execute(args: argparse.Namespace) -> int:
    """Print the ranks."""
    from ensembles.run.tables import totals_by_rank

    run, filters = open_table(args)
    ranks = totals_by_rank(run, args.sort, **filters)
    return print_table(args, run, ranks, "rank", ("rank",), _first_cells, waits=True)


def _first_cells(rank: RankTotals) -> tuple[str]:
    return (str(rank.rank),)
