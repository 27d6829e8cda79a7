"""The pages of a history: one of all experiments, and one for each with its pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from bokeh.embed import components
from bokeh.layouts import column
from bokeh.models import (
    Column,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    LinearColorMapper,
    Model,
    NumeralTickFormatter,
)
from bokeh.models.annotations import LegendItem, Span
from bokeh.models.renderers import DataRenderer, GlyphRenderer
from bokeh.models.widgets import Div
from bokeh.palettes import Viridis256
from bokeh.plotting import figure
from bokeh.resources import Resources
from jinja2 import Environment, Template

from ensembles.comparison.components import PLACE, quantile_octaves
from ensembles.files.atomic_write import followed, temporary_file
from ensembles.history.check import BASELINE, Check, check, control_false_alarms
from ensembles.history.record import RunRecord
from ensembles.history.series import make_series
from ensembles.history.store import Acknowledgement, Experiment, History, StoredRun
from ensembles.model import __version__
from ensembles.model.errors import EnsioError
from ensembles.model.units import seconds_text
from ensembles.summaries.bins import BIN_COUNT, bin_low_ns
from ensembles.viz.common import figures as draw
from ensembles.viz.common.style import OVERLAID, op_colour, time_ticks
from ensembles.viz.common.theme import theme_program

_CHANGE = "#d62728"
_KNOWN = "#2ca02c"


def over_runs(
    title: str, lines: Sequence[Line], data: ExperimentData, name: str, kind: KindOverRuns | None = None
) -> figure:
    """Draw values over the runs with their prediction intervals."""
    fig = draw.new_figure(title, 300, x_range=(-0.5, len(data.runs) - 0.5), y_axis_type="log", name=name)
    _label(fig, data)
    labels = [f"{run.id}" for run in data.runs]
    when = [f"{run.start:%Y-%m-%d %H:%M}" for run in data.runs]
    drawn: list[DataRenderer] = []
    items: list[LegendItem] = []
    for at, line in enumerate(lines):
        x = np.arange(len(line.value_s))
        source = ColumnDataSource(
            {
                "x": x,
                "y": line.value_s,
                "low": line.low_s,
                "high": line.high_s,
                "id": labels,
                "start": when,
                "part": [line.name] * len(x),
                "took": [seconds_text(each) if np.isfinite(each) else "none" for each in line.value_s],
                "expected": [
                    f"{seconds_text(low)} to {seconds_text(high)}" if np.isfinite(low) else "not yet known"
                    for low, high in zip(line.low_s, line.high_s, strict=True)
                ],
            }
        )
        colour = OVERLAID[at % len(OVERLAID)]
        known = np.isfinite(line.low_s)
        parts: list[GlyphRenderer[Any]] = []
        if known.any():
            band = ColumnDataSource({"x": x[known], "low": line.low_s[known], "high": line.high_s[known]})
            parts.append(fig.varea("x", "low", "high", source=band, color=colour, alpha=0.12))
        parts.append(fig.line("x", "y", source=source, color=colour))
        parts.append(fig.scatter("x", "y", source=source, color=colour, size=6, name="points"))
        drawn.append(parts[-1])
        items.append(draw.legend_item(line.name, *parts))
    draw.add_hover(
        fig,
        drawn,
        [
            ("", "@part"),
            ("run", "@id, @start"),
            ("duration", "@took"),
            ("expected", "@expected"),
        ],
    )
    # Above the picture, where it takes no width of a narrow one.
    draw.horizontal_legend(fig, items, click_policy="hide")
    draw.add_legend_buttons(fig)
    _mark(fig, data, kind)
    return fig


def _mark(fig: figure, data: ExperimentData, kind: KindOverRuns | None) -> None:
    """Mark the runs with which changes of a kind of calls, or of all calls, begin."""
    number = {run.id: at for at, run in enumerate(data.runs)}
    layer, op = (None, None) if kind is None else (kind.layer, kind.op)
    marked = {
        change.since_run
        for change in data.check.changes
        if change.layer in (None, layer) and change.op in (None, op)
    }
    said = [f"Red: a change begins with run {each}." for each in number if each in marked]
    for change in marked:
        if change in number:
            fig.add_layout(
                Span(location=number[change] - 0.5, dimension="height", line_color=_CHANGE, line_width=2)
            )
    for known in data.acknowledged:
        after = [at for at, run in enumerate(data.runs) if run.start >= known.since]
        if after:
            fig.add_layout(
                Span(location=after[0] - 0.5, dimension="height", line_color=_KNOWN, line_dash="dashed")
            )
            said.append(f"Dashed green: {draw.plain(known.reason)[:60]}.")
    for sentence in reversed(said[:3]):
        draw.subtitle(fig, sentence)


def _label(fig: figure, data: ExperimentData) -> None:
    """Label runs by their dates."""
    fig.xaxis.axis_label, fig.yaxis.axis_label = "run, by its date (UTC)", "duration"
    fig.yaxis.formatter = time_ticks()
    # Runs of less than two days are distinguished by their time of day.
    spread = max(run.start for run in data.runs) - min(run.start for run in data.runs)
    shape = "%Y-%m-%d" if spread > timedelta(days=2) else "%d %H:%M:%S"
    fig.xaxis.major_label_overrides = {at: f"{run.start:{shape}}" for at, run in enumerate(data.runs)}


def heat_map(kind: KindOverRuns, data: ExperimentData, name: str) -> figure:
    """Draw the share of calls by log duration and run: modes are lines, and a new mode is a new line."""
    rows, runs = kind.density.shape
    low_s, high_s = 2.0**kind.low_octave, 2.0 ** (kind.low_octave + rows / ROWS_PER_OCTAVE)
    fig = draw.new_figure(
        f"{kind.layer} {kind.op}: share of the calls by duration and run; brighter: more. Click a run",
        280,
        x_range=(-0.5, runs - 0.5),
        y_range=(low_s, high_s),
        y_axis_type="log",
        name=name,
    )
    _label(fig, data)
    fig.yaxis.ticker = FixedTicker(ticks=_ticks_s(low_s, high_s))
    mapper = LinearColorMapper(palette=Viridis256, low=0.0, high=float(np.sqrt(kind.density.max())) or 1.0)
    # The corners are on the log axis; between them rows are spaced evenly, as octaves are.
    fig.image(
        [np.sqrt(kind.density).astype(np.float32)],
        x=-0.5,
        y=low_s,
        dw=runs,
        dh=high_s - low_s,
        color_mapper=mapper,  # type: ignore[call-arg]
        name="heat",
    )
    _mark(fig, data, kind)
    return fig


def _ticks_s(low_s: float, high_s: float) -> list[float]:
    """Return ticks of a logarithmic axis, close enough to read a mode between them."""
    decades = range(int(np.floor(np.log10(low_s))), int(np.ceil(np.log10(high_s))) + 1)
    steps = (1.0, 2.0, 5.0) if len(decades) <= 5 else (1.0,)
    ticks = (step * 10.0**decade for decade in decades for step in steps)
    return [tick for tick in ticks if low_s <= tick <= high_s]


def distribution(
    kind: KindOverRuns, data: ExperimentData, heat: figure, name: str, chosen: int | None = None
) -> tuple[figure, Div]:
    """Draw the distribution of a run over that of the others before it; a click on the heat map chooses it.

    A page with a function ``ensioChosen`` gets the number of the chosen run.

    `chosen`: position of the run that is shown first. Default: the latest.
    """
    rows, runs = kind.density.shape
    centre = kind.low_octave + (np.arange(rows) + 0.5) / ROWS_PER_OCTAVE
    at = runs - 1 if chosen is None else chosen
    before = kind.density[:, max(0, at - BASELINE) : at]
    baseline = before.mean(axis=1) if at else np.full(rows, np.nan)
    source = ColumnDataSource({"t_s": 2.0**centre, "run": kind.density[:, at], "baseline": baseline})
    fig = draw.new_figure(
        f"{kind.layer} {kind.op}: one run over its baseline", 260, x_axis_type="log", name=name
    )
    fig.xaxis.axis_label, fig.yaxis.axis_label = "call duration (unit at each tick)", "share of the calls"
    fig.xaxis.formatter, fig.yaxis.formatter = time_ticks(), NumeralTickFormatter(format="0.[0] %")
    fig.xaxis.ticker = FixedTicker(ticks=_ticks_s(2.0**kind.low_octave, 2.0 ** (centre[-1] + 1)))
    fig.step(
        "t_s",
        "baseline",
        source=source,
        mode="center",
        color="#7f7f7f",
        legend_label=f"{'up to ' if runs > BASELINE else ''}{min(BASELINE, runs - 1)} runs before",
    )
    colour = OVERLAID[0] if kind.op == "wait" else op_colour(kind.op)  # waiting has the grey of the others
    fig.step("t_s", "run", source=source, mode="center", color=colour, legend_label="run")
    texts = [_text(data, at) for at in range(runs)]
    said = Div(text=texts[at], render_as_text=True, name=f"{name} text")
    arguments: dict[str, Any] = {
        "source": source,
        "said": said,
        "texts": texts,
        "ids": [run.id for run in data.runs],
        "before": BASELINE,
        "columns": ColumnDataSource({str(at): kind.density[:, at] for at in range(runs)}),
    }
    heat.js_on_event(
        "tap",
        CustomJS(
            args=arguments,
            code="""
            const n = texts.length;
            const at = Math.max(0, Math.min(n - 1, Math.round(cb_obj.x)));
            const run = Array.from(columns.data[String(at)]);
            const first = Math.max(0, at - before);
            const baseline = run.map((_, row) => {
                let sum = 0;
                for (let k = first; k < at; k++) { sum += columns.data[String(k)][row]; }
                return at > first ? sum / (at - first) : NaN;
            });
            source.data = {t_s: source.data.t_s, run, baseline};
            said.text = texts[at];
            if (typeof ensioChosen === "function") { ensioChosen(ids[at]); }
            """,
        ),
    )
    return fig, said


def _text(data: ExperimentData, at: int) -> str:
    run, record = data.runs[at], data.records[at]
    labels = "".join(f", {name}={value}" for name, value in run.labels.items())
    findings = "".join(f"; {one.severity}: {one.title}" for one in record.findings) or "; no findings"
    return (
        f"run {run.id} of {run.start:%Y-%m-%d %H:%M} UTC{labels}{findings}; report: ensio report {run.path}"
    )


ROWS_PER_OCTAVE = 4


@dataclass(frozen=True)
class Line:
    """One value over the runs."""

    name: str
    value_s: np.ndarray  # Seconds; nan: the run has none; shape (r,)
    # low_s, high_s: Prediction interval of 95 % from the runs before; nan: fewer than three; shape (r,)
    low_s: np.ndarray
    high_s: np.ndarray


@dataclass(frozen=True)
class KindOverRuns:
    """One kind of calls over the runs."""

    layer: str
    op: str
    lines: list[Line]  # Modes, median, 90 % quantile, slowest
    density: np.ndarray  # Share of the calls by log duration and run; shape (rows, r)
    low_octave: float  # Log2 of the lowest duration in seconds; a row is `ROWS_PER_OCTAVE` of an octave


@dataclass(frozen=True)
class ExperimentData:
    """One experiment: its runs in the order of time, the result of the check, and values over runs."""

    name: str
    runs: list[StoredRun]
    records: list[RunRecord]
    check: Check
    kinds: list[KindOverRuns]
    phases: list[Line]
    time_s: np.ndarray
    acknowledged: list[Acknowledgement]

    @property
    def starts(self) -> list[datetime]:
        """Start of each run, UTC."""
        return [run.start for run in self.runs]


def experiment_data(
    history: History, found: Check, labels: Mapping[str, str] | None = None, until: StoredRun | None = None
) -> ExperimentData:
    """Read what the page of an experiment shows."""
    most = 200  # the latest runs
    runs = history.runs(found.experiment, labels, last=most)
    if not runs:
        wanted = ", ".join(f"{name}={value}" for name, value in (labels or {}).items())
        raise EnsioError(f"no run of {found.experiment} has the labels {wanted}")
    if until is not None and until.start < runs[0].start:
        runs = history.runs(found.experiment, labels, last=most, until=until)
    read = history.readable(runs)
    runs, records = [run for run in runs if run.id in read], list(read.values())
    times: dict[tuple[str, str], float] = {}
    for record in records:
        for kind in record.kinds:
            if kind.counts:
                times[kind.layer, kind.op] = times.get((kind.layer, kind.op), 0.0) + kind.time_s
    chosen = sorted(times, key=lambda key: -times[key])[:4]
    series = make_series(records, range(len(records))) if len(records) > 1 else None
    kinds = []
    for layer, op in chosen:
        modes = []
        if series is not None:
            for at, part in enumerate(series.parts):
                if part.what == PLACE and (part.layer, part.op) == (layer, op):
                    assert part.t_s is not None
                    place_s = part.t_s * 2.0 ** series.absolute[:, at]
                    modes.append(_line(part.name.removesuffix(" place"), place_s))
        kinds.append(_kind(records, layer, op, modes))
    return ExperimentData(
        found.experiment,
        runs,
        records,
        found,
        kinds,
        _phases(records),
        np.array([run.io_time_s for run in runs]),
        history.acknowledgements(found.experiment),
    )


def _kind(records: list[RunRecord], layer: str, op: str, modes: list[Line]) -> KindOverRuns:
    counts = np.zeros((len(records), BIN_COUNT))
    slowest = np.full(len(records), np.nan)
    for at, record in enumerate(records):
        for kind in record.kinds:
            if (kind.layer, kind.op) == (layer, op):
                counts[at, kind.bins] = kind.counts
                slowest[at] = kind.max_s
    median, p90 = (2.0 ** quantile_octaves(counts, level) * 1e-9 for level in (0.5, 0.9))
    lines = [*modes, _line("median", median), _line("90 % quantile", p90), _line("slowest", slowest)]
    octave = np.log2(np.maximum(bin_low_ns().astype(np.float64), 0.5) * 1e-9)
    row = np.floor(octave * ROWS_PER_OCTAVE).astype(np.int64)
    used = np.flatnonzero(counts.any(axis=0))
    first, last = int(row[used].min()) - 1, int(row[used].max()) + 1
    density = np.zeros((last - first + 1, len(records)))
    np.add.at(density, row[used] - first, counts[:, used].T)
    density /= np.maximum(counts.sum(axis=1), 1)
    return KindOverRuns(layer, op, lines, density, first / ROWS_PER_OCTAVE)


def _phases(records: list[RunRecord]) -> list[Line]:
    numbers = {tuple((one.phase, one.name) for one in record.phases) for record in records}
    if len(numbers) != 1:
        return []
    shown = next(iter(numbers))[:8]
    names = [f"phase {number} {name or ''}".rstrip() for number, name in shown]  # several have one name
    times = [np.array([record.phases[at].time_s for record in records]) for at in range(len(shown))]
    return [_line(name, time_s) for name, time_s in zip(names, times, strict=True)]


def _line(name: str, value_s: np.ndarray) -> Line:
    """Add the prediction interval of each run from the runs before it, on the log scale."""
    from ensembles.statistics.special import stdtrit

    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log2(np.where(value_s > 0, value_s, np.nan))
    low, high = np.full(len(logs), np.nan), np.full(len(logs), np.nan)
    for at in range(3, len(logs)):
        before = logs[max(0, at - BASELINE) : at]
        before = before[np.isfinite(before)]
        if len(before) >= 3:
            half = stdtrit(len(before) - 1, 0.975) * before.std(ddof=1) * np.sqrt(1 + 1 / len(before))
            low[at], high[at] = 2.0 ** (before.mean() - half), 2.0 ** (before.mean() + half)
    return Line(name, value_s, low, high)


SCRIPT = "bokeh.js"
"""Name of the copy of BokehJS that the pages share."""


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
    """Check the experiments with the latest runs, 200 at most, by name.

    False alarms are controlled over all of them.
    """
    latest = sorted(history.experiments(), key=lambda one: one.latest, reverse=True)[:200]
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
        heat = heat_map(kind, data, f"heat {number}")
        found += [_kind_over_runs(kind, data, number), heat]
        found += distribution(kind, data, heat, f"distribution {number}", chosen)
    return found + _phases_over_runs(data)


def _kind_over_runs(kind: KindOverRuns, data: ExperimentData, number: int) -> figure:
    title = f"{kind.layer} {kind.op} over runs, with 95 % prediction intervals"
    return over_runs(title, kind.lines, data, f"lines {number}", kind)


def _phases_over_runs(data: ExperimentData) -> list[figure]:
    return [over_runs("Time of phases over runs", data.phases, data, "phases")] if data.phases else []


def experiment(place: str | os.PathLike[str], name: str) -> Column:
    """Draw the durations of an experiment over its runs, as ``ensio serve HISTORY`` shows them."""
    history = History(os.fspath(place))
    data = experiment_data(history, check(history, name, compared=False))
    figures = [_kind_over_runs(kind, data, number) for number, kind in enumerate(data.kinds, 1)]
    return column(*figures, *_phases_over_runs(data), sizing_mode="stretch_width")


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
