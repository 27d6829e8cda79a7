"""A history as static pages: one of all experiments, and one for each, without any request to a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
from bokeh.embed import components
from bokeh.models import Model
from bokeh.resources import Resources
from jinja2 import Environment

from ensembles import __version__
from ensembles.files.atomic_write import atomic_write
from ensembles.history.check import Check, check, control_false_alarms
from ensembles.history.store import History
from ensembles.model.errors import EnsioError
from ensembles.viz.history.data import ExperimentData, experiment_data
from ensembles.viz.history.figures import distribution, heat_map, over_runs

SCRIPT = "bokeh.js"


def write_site(history: History, folder: str) -> list[str]:
    """Write the pages of a history.

    Parameters
    ----------
    history : History
    folder : str
        Made if it is missing. Pages of an earlier call are replaced.

    Returns
    -------
    list of str
        Paths of the pages, that of all experiments first.

    Raises
    ------
    EnsioError
        The history holds no run.
    OSError
        The folder cannot be written.
    """
    names = [one.name for one in history.experiments()]
    if not names:
        raise EnsioError("the history holds no run: add some with ensio history add")
    os.makedirs(folder, exist_ok=True)
    resources = Resources(mode="inline")
    _write(os.path.join(folder, SCRIPT), "\n".join(resources.js_raw))
    found = control_false_alarms([check(history, name, compared=False) for name in names])
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = files("ensembles.viz.history").joinpath("site.html").read_text(encoding="utf-8")
    page = template.from_string(text)
    written, rows = [], []
    for number, one in enumerate(found, 1):
        data = experiment_data(history, one)
        path = os.path.join(folder, f"experiment-{number}.html")
        drawn = pictures(data)
        script, parts = components(drawn) if drawn else ("", [])
        _write(
            path,
            page.render(
                title=one.experiment,
                check=one,
                data=data,
                script=script,
                pictures=parts,
                library=SCRIPT,
                version=__version__,
                rows=None,
            ),
        )
        written.append(path)
        rows.append(
            {
                "check": one,
                "page": os.path.basename(path),
                "runs": len(data.runs),
                "sparkline": sparkline(data.time_s),
                "last": last_change(one, data),
            }
        )
    path = os.path.join(folder, "index.html")
    _write(path, page.render(title="History of runs", rows=rows, version=__version__))
    return [path, *written]


def pictures(data: ExperimentData) -> list[Model]:
    """Return the pictures of the page of an experiment, for a page or a server."""
    found: list[Model] = []
    for number, kind in enumerate(data.kinds, 1):
        title = f"{kind.layer} {kind.op} over runs, with 95 % prediction intervals"
        heat = heat_map(kind, data, f"heat {number}")
        found += [over_runs(title, kind.lines, data, f"lines {number}"), heat]
        found += distribution(kind, data, heat, f"distribution {number}")
    if data.phases:
        found.append(over_runs("Time of phases over runs", data.phases, data, "phases"))
    return found


def last_change(found: Check, data: ExperimentData) -> str:
    """Describe the latest change, known or not, in one line."""
    if found.changes:
        change = found.changes[0]
        since = f"since {change.since[:10]}: " if change.since else ""
        return f"{since}{change.sentence}"
    if data.acknowledged:
        known = data.acknowledged[-1]
        return f"known since {known.since:%Y-%m-%d}: {known.reason}"
    return ""


def sparkline(values: Sequence[float] | np.ndarray, width: int = 160, height: int = 28) -> str:
    """Return the points of a polyline of the latest 60 values, in pixels.

    Examples
    --------
    >>> from ensembles.viz.history.site import sparkline
    >>> sparkline([1.0, 3.0, 2.0], width=100, height=20)
    '2.0,18.0 50.0,2.0 98.0,10.0'
    """
    shown = np.asarray(values, np.float64)[-60:]
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return ""
    x = np.linspace(2, width - 2, len(shown)) if len(shown) > 1 else np.array([width / 2])
    span = float(np.ptp(shown)) or 1.0
    y = height - 2 - (shown - shown.min()) / span * (height - 4)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _write(path: str, text: str) -> None:
    with atomic_write(path) as descriptor, open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode(errors="replace"))
