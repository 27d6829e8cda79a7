"""An experiment of a history: how its runs changed over time."""

from __future__ import annotations

import os

from bokeh.layouts import column
from bokeh.models.layouts import Column

from ensembles.history.check import check
from ensembles.history.store import History
from ensembles.viz.history.figures import experiment_data, over_runs


def experiment(place: str | os.PathLike[str], name: str) -> Column:
    """Draw the durations of an experiment over its runs, as ``ensio serve HISTORY`` shows them."""
    history = History(os.fspath(place))
    data = experiment_data(history, check(history, name, compared=False))
    figures = [
        over_runs(
            f"{kind.layer} {kind.op} over runs, with 95 % prediction intervals",
            kind.lines,
            data,
            f"lines {number}",
            kind,
        )
        for number, kind in enumerate(data.kinds, 1)
    ]
    if data.phases:
        figures.append(over_runs("Time of phases over runs", data.phases, data, "phases"))
    return column(*figures, sizing_mode="stretch_width")
