"""The ensemble that the arguments of a command describe: a run, the filters, per call or per MiB."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.filters import selection_of
from ensembles.cli.streams import tell
from ensembles.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.ensemble import Ensemble


def ensemble_from_args(args: argparse.Namespace) -> Ensemble:
    """Open ``args.run``, and take the calls that the filters choose for one ensemble.

    Notes (of the run, and of the ensemble) are told on standard error.

    Raises
    ------
    EnsioError
        The run cannot be read, a filter makes no sense, or the run does not tell what is asked for.
    """
    import ensembles

    run = ensembles.open(args.run)
    if run.mode == "profile":
        raise EnsioError(
            f"{args.run} was recorded in mode profile, which keeps no events: record again with ensio run "
            "--mode trace"
        )
    selection = selection_of(args).for_run(run)
    ensemble = run.chosen_by(selection).ensemble(per="MiB" if args.per_byte else "call")
    for note in (*run.notes, *ensemble.notes):
        tell(f"note: {note}")
    return ensemble
