"""What the explorer shows of runs: their calls, or summaries."""

from __future__ import annotations

from collections.abc import Sequence

from ensembles.run.run import Run
from ensembles.viz.explorer.large import LargeRun, can_be_summed
from ensembles.viz.explorer.shown import MOST_EVENTS, Shown


def shown_runs(runs: Run | Sequence[Run]) -> list[Shown]:
    """Read the calls of one or several runs; what takes long, when it is asked for."""
    return [shown_run(run, in_background=False) for run in ([runs] if isinstance(runs, Run) else runs)]


def shown_run(run: Run, *, in_background: bool = True) -> Shown:
    """Return what the explorer shows of a run: its calls, or summaries if there are too many.

    Parameters
    ----------
    run : Run
    in_background : bool
        As for `LargeRun`.
    """
    if run.reading.most_events > MOST_EVENTS and can_be_summed(run):
        return LargeRun(run, in_background=in_background)
    return Shown(run)
