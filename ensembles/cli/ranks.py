"""``ensio ranks``: show the totals of each rank."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.totals_table import add_table_arguments, open_table, print_table

if TYPE_CHECKING:
    from ensembles.run.run import Run
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
    of_rows_s = sum(row.wait_s for row in ranks)
    more_s = 0.0 if filters else waiting_s(run) - of_rows_s
    if more_s < 1e-9 * of_rows_s:
        more_s = 0.0  # rounding
    more = {"wait_of_messages_s": None if filters else more_s}
    code = print_table(args, run, ranks, "rank", ("rank",), _first_cells, waits=True, more=more)
    if more_s > _LEAST_SHARE * of_rows_s and not args.json:
        from ensembles.cli.options import warn
        from ensembles.model.units import seconds_text

        told = seconds_text(more_s)
        warn(f"note: waiting is that of these calls; messages, which are in no row, took {told}: ensio info")
    return code


_LEAST_SHARE = 0.01


def waiting_s(run: Run) -> float:
    """Return the time of all ranks in calls that wait for others, messages included.

    Returns
    -------
    float
        In seconds, without inner calls; 0: the run has no sums.
    """
    import numpy as np

    if not run.reading.has_summary:
        return 0.0
    cells = run.summary.cells
    waits = np.array([call.waits_for_tasks for call in run.summary.calls], bool)[cells["call"]]
    return float((cells["time_ns"] - cells["inner_ns"])[waits].sum()) * 1e-9


def _first_cells(rank: RankTotals) -> tuple[str]:
    return (str(rank.rank),)
