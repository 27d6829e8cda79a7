"""The ensemble that the arguments of a command select: a run, filters, per call or per MiB."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.execution_args import open_run
from ensembles.cli.filter_args import selection_from_args
from ensembles.cli.stdio import warn

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble


def ensemble_from_args(args: argparse.Namespace) -> Ensemble:
    """Open ``args.run`` and return the ensemble of the calls that the filters select.

    The notes of the run and of the ensemble go to standard error.

    Raises
    ------
    EnsioError
        The run cannot be read, a filter is not valid, or the run lacks the data that a filter needs.
    """
    from ensembles.ensemble.from_run import ensemble_from_run

    run = open_run(args, args.run)
    selection = selection_from_args(args).for_run(run, from_summary=True)
    ensemble = ensemble_from_run(run, selection, per="MiB" if args.per_byte else "call")
    for note in dict.fromkeys([*run.notes, *ensemble.notes]):
        warn(f"note: {note}")
    return ensemble
