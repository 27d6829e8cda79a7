"""The pages of a history: one of all experiments, and one for each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from bokeh.embed import components
from bokeh.models import Model
from bokeh.resources import Resources
from jinja2 import Environment, Template

from ensembles.files.atomic_write import followed, temporary_file
from ensembles.history.check import Check, check, control_false_alarms
from ensembles.history.store import Acknowledgement, Experiment, History, StoredRun
from ensembles.model import __version__
from ensembles.model.errors import EnsioError
from ensembles.viz.common.theme import theme_program
from ensembles.viz.history.figures import ExperimentData, distribution, experiment_data, heat_map, over_runs

SCRIPT = "bokeh.js"
"""Name of the copy of BokehJS that the pages share."""


MOST_EXPERIMENTS = 200
"""Experiments that the page of all shows: those with the latest runs."""

_SPARK_RUNS = 60


@dataclass(frozen=True)
class Row:
    """One experiment on the page of all."""

    check: Check  # Of all its runs
    experiment: Experiment  # With the number of runs that the labels choose
    runs: list[StoredRun]  # The latest of them, in the order of time
    acknowledged: list[Acknowledgement]

    @property
    def sparkline(self) -> str:
        """Points of the time in I/O over the runs."""
        return sparkline([run.io_time_s for run in self.runs])

    @property
    def last_change(self) -> str:
        """The latest change, known or not, in one line."""
        if self.check.changes:
            return self.check.reason
        if self.acknowledged:
            known = self.acknowledged[-1]
            return f"known since {known.since:%Y-%m-%d}: {known.reason}"
        return ""


def checked(history: History) -> dict[str, Check]:
    """Check the experiments with the latest runs, `MOST_EXPERIMENTS` at most, by name.

    False alarms are controlled over all of them.
    """
    latest = sorted(history.experiments(), key=lambda one: one.latest, reverse=True)[:MOST_EXPERIMENTS]
    found = [check(history, name, compared=False) for name in sorted(one.name for one in latest)]
    return {one.experiment: one for one in control_false_alarms(found)}


def experiment_rows(
    history: History, checks: Mapping[str, Check], labels: Mapping[str, str] | None = None
) -> list[Row]:
    """Read the latest runs of experiments.

    `labels`: show only runs with all of these labels, and only experiments that have some.
    """
    return [
        Row(
            checks[one.name],
            one,
            history.runs(one.name, labels, last=_SPARK_RUNS),
            history.acknowledgements(one.name),
        )
        for one in history.experiments(labels)
        if one.name in checks
    ]


def all_experiments_page(rows: Sequence[Row], links: Mapping[str, str], of: int, **more: Any) -> str:
    """Return the page of all experiments."""
    return _template().render(
        title="History of runs", rows=rows, links=links, of=of, version=__version__, script="", **more
    )


def experiment_page(data: ExperimentData, index: str, chosen: int | None = None, **more: Any) -> str:
    """Return the page of an experiment.

    `chosen`: position of the run whose distributions are shown first. Default: the latest.
    """
    drawn = pictures(data, chosen)
    script, parts = components(drawn) if drawn else ("", [])
    return _template().render(
        title=data.name,
        check=data.check,
        data=data,
        script=script,
        pictures=parts,
        library=SCRIPT,
        theme=theme_program(),
        version=__version__,
        rows=None,
        index=index,
        **more,
    )


def pictures(data: ExperimentData, chosen: int | None = None) -> list[Model]:
    """Return the pictures of the page of an experiment."""
    found: list[Model] = []
    kinds = sorted(data.kinds, key=lambda kind: kind.op == "wait")  # I/O first
    for number, kind in enumerate(kinds, 1):
        title = f"{kind.layer} {kind.op} over runs, with 95 % prediction intervals"
        heat = heat_map(kind, data, f"heat {number}")
        found += [over_runs(title, kind.lines, data, f"lines {number}", kind), heat]
        found += distribution(kind, data, heat, f"distribution {number}", chosen)
    if data.phases:
        found.append(over_runs("Time of phases over runs", data.phases, data, "phases"))
    return found


@cache
def script_text() -> str:
    """Return BokehJS, with widgets."""
    return "\n".join(Resources(mode="inline", components=["bokeh", "bokeh-widgets"]).js_raw)


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = files("ensembles.viz.history").joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(text)


def sparkline(values: Sequence[float] | np.ndarray, width: int = 160, height: int = 28) -> str:
    """Return the points of a polyline of the latest 60 values, in pixels."""
    shown = np.asarray(values, np.float64)[-_SPARK_RUNS:]
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return ""
    x = np.linspace(2, width - 2, len(shown)) if len(shown) > 1 else np.array([width / 2])
    span = float(np.ptp(shown)) or 1.0
    y = height - 2 - (shown - shown.min()) / span * (height - 4)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def no_runs() -> EnsioError:
    """Make the error of a history without runs."""
    return EnsioError("the history holds no run: add some with ensio history add")


INDEX = "index.html"


def write_site(history: History, folder: str) -> list[str]:
    """Write the pages of a history."""
    rows = experiment_rows(history, checked(history))
    if not rows:
        raise no_runs()
    followed(folder)
    os.makedirs(folder, exist_ok=True)
    _write(os.path.join(folder, SCRIPT), script_text())
    links = {row.check.experiment: f"experiment-{number}.html" for number, row in enumerate(rows, 1)}
    written = [os.path.join(folder, link) for link in links.values()]
    for row, path in zip(rows, written, strict=True):
        _write(path, experiment_page(experiment_data(history, row.check), INDEX))
    index = os.path.join(folder, INDEX)
    _write(index, all_experiments_page(rows, links, len(history.experiments())))
    return [index, *written]


def _write(path: str, text: str) -> None:
    with temporary_file(path) as descriptor, open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode(errors="replace"))
