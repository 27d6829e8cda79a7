"""Pictures take runs, events or summaries, and hold the values of the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.models import HoverTool, Legend, Title
from bokeh.plotting import figure
from made_runs import run_of
from spool_writer import SpoolContent, write_spool

import ensembles as en
from ensembles import open as open_run
from ensembles import viz
from ensembles.model.c_layout import EVENT
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.model.statement import Table
from ensembles.model.units import share_text
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.raster import CLASSES, Raster
from ensembles.summaries.rate import RateCurve
from ensembles.viz.common.figures import time_range
from ensembles.viz.common.style import CLASS_OF_OP, COLOURS, byte_unit, shade, time_unit
from ensembles.viz.report.tables import moments

TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
]


@pytest.fixture
def run(tmp_path: Path):
    return run_of(tmp_path / "run", TASKS)


def find(picture, name: str) -> figure:
    return picture.select_one({"name": name})


def legend_labels(fig: figure) -> list[str]:
    return [item.label.value for legend in fig.select({"type": Legend}) for item in legend.items]


def test_run_events_and_summaries_give_the_same_pictures(run) -> None:
    raster, curve, histogram = Raster(2), RateCurve(), LogHistogram()
    for summary in (raster, curve, histogram):
        summary.add(run.events)
    images = [
        find(viz.trace_diagram(data), "trace_diagram").renderers[0].data_source.data["image"][0]
        for data in (run, run.events, raster)
    ]
    assert (images[0] == images[1]).all()
    assert (images[0] == images[2]).all()
    for picture, datas in (
        (viz.rate, (run, run.events, curve)),
        (viz.histogram, (run, run.events, histogram)),
    ):
        labels = [legend_labels(picture(data)) for data in datas]
        assert labels[0] == labels[1] == labels[2]
        assert labels[0]


def test_something_else_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="a run, events or a RateCurve is needed, not int"):
        viz.rate(42)


def test_image_holds_the_share_of_each_class(run) -> None:
    raster = Raster(2)
    raster.add(run.events)
    fig = find(viz.trace_diagram(raster), "trace_diagram")
    shares = fig.renderers[0].data_source.data["image"][0] / 255
    for position, name in enumerate(raster.present()):
        np.testing.assert_allclose(shares[:, :, position], raster.shares(name), atol=1 / 255)
    assert fig.renderers[0].glyph.color_mapper.palette == [COLOURS[name] for name in raster.present()]


def test_smallest_share_is_not_drawn_as_nothing() -> None:
    calls = [("pwrite", 0.0, 1e-9, 1), ("pread", 10.0, 1.0, 1)]
    events = events_of_calls(calls)
    fig = find(viz.trace_diagram(events), "trace_diagram")
    assert fig.renderers[0].data_source.data["image"][0][0, 0, 0] == 1


def events_of_calls(calls) -> Events:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return run_of(Path(folder) / "run", [calls], lasted_s=20.0).events


def test_area_under_the_drawn_rate_is_the_bytes_moved(run) -> None:
    fig = viz.rate(run)
    area = {}
    for item in fig.select_one(Legend).items:
        line = item.renderers[1]
        start, value = (np.asarray(line.data_source.data[name]) for name in (line.glyph.x, line.glyph.y))
        unit = byte_unit(1024.0)[0] if "KiB/s" in fig.yaxis.axis_label else byte_unit(1 << 20)[0]
        area[item.label.value.split(":")[0]] = float((np.diff(start) * value[:-1]).sum() * unit)
    assert area == {"write": pytest.approx(1 << 20), "read": pytest.approx(1 << 19)}


def test_rates_of_short_calls_have_no_ripples_and_say_when_they_are_above_the_curve(tmp_path: Path) -> None:
    one = viz.rate(run_of(tmp_path / "one", [[("pwrite", 0.001, 3e-6, 7)]]))
    columns = one.renderers[0].data_source.data
    edges_s, rates = np.asarray(columns["left"], float), np.asarray(columns["write"], float)
    assert np.diff(edges_s).min() >= 127e-9
    inside = rates[:-1][1:-1]  # the first and the last cell are cut
    assert inside.max() < 1.1 * inside.min()
    short = [("pwrite", 0.01 * i, 1e-6, 1000) for i in range(100)]
    (legend,) = viz.rate(run_of(tmp_path / "short", [short])).select({"type": Legend})
    (label,) = (item.label.value for item in legend.items)
    assert label == "write: 97.7 KiB, 954 MiB/s while data moved (in 100 µs of short calls)"


def test_logarithmic_axes_of_decades_have_small_ticks() -> None:
    wide, narrow = (en.Ensemble(np.geomspace(1e-6, end, 50)) for end in (1e-2, 2e-5))
    assert viz.histogram(wide, cumulative=True).xaxis[0].minor_tick_line_color is not None
    assert viz.histogram(narrow, cumulative=True).xaxis[0].minor_tick_line_color is None


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_histogram_draws_every_call_once(run, scale: str) -> None:
    fig = viz.histogram(run, scale=scale)
    drawn = {}
    for item in fig.select_one(Legend).items:
        name = item.label.value.split(" ")[0]
        drawn[name] = item.renderers[2].data_source.data["n"].sum()
    assert drawn == {"pwrite": 1, "pread": 1, "open": pytest.approx(2)}
    if scale == "linear":
        assert fig.yaxis[0].ticker.min_interval == 1  # no two ticks of one number
    assert "n = 2" in " ".join(legend_labels(fig))


def test_calls_that_take_little_time_are_hidden_on_linear_axes_only(run) -> None:
    shown = {}
    for scale in ("linear", "log"):
        items = viz.histogram(run, scale=scale).select_one(Legend).items
        shown[scale] = {item.label.value.split(" ")[0] for item in items if item.renderers[0].visible}
    assert shown == {"linear": {"pwrite", "pread"}, "log": {"pwrite", "pread", "open"}}
    for scale in ("linear", "log"):
        said = [title.text for title in viz.histogram(run, scale=scale).select({"type": Title})]
        assert any("Hidden (" in text and "): open (n = " in text for text in said) == (scale == "linear")


def test_few_very_long_calls_do_not_squeeze_the_linear_picture() -> None:
    calls = [("pwrite", 0.01 * i, 0.001, 1) for i in range(999)] + [("pwrite", 10.0, 1.0, 1)]
    fig = viz.histogram(events_of_calls(calls), scale="linear")
    assert fig.x_range.end < 0.002
    assert "1 of the calls shown is longer" in fig.title.text


def test_picture_shares_the_time_axis_that_it_is_given(run) -> None:
    x_range = time_range(0, 10**9)
    assert viz.rate(run, x_range=x_range).x_range is x_range
    picture = viz.trace_diagram(run, x_range=x_range)
    assert find(picture, "trace_diagram").x_range is x_range
    assert find(picture, "tasks_inside").x_range is x_range


def test_moments_are_of_each_function(run) -> None:
    table, _ = moments(run)
    assert isinstance(table, Table)
    assert [column.header for column in table.columns[:4]] == ["call", "n", "mean", "std"]
    rows = {row[0]: row for row in zip(*(column.values for column in table.columns), strict=True)}
    assert {name: row[1] for name, row in rows.items()} == {"pwrite": 1, "pread": 1, "open": 2}
    open_row = rows["open"]
    assert open_row[2:8:5] == pytest.approx((0.015, 0.015))  # of two calls, the median is between them
    assert open_row[4:6] == ("–", "–")
    assert open_row[6] == pytest.approx(0.01)
    assert open_row[-1] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("low_ns", "high_ns", "begin_s"),
    [(0, 10**9, -0.01), (2 * 10**8, 10**9, -0.008), (9 * 10**8, 10**9, 0.899), (-(10**9), 10**9, -1.02)],
)
def test_time_axis_begins_with_the_run_unless_that_is_far_away(
    low_ns: int, high_ns: int, begin_s: float
) -> None:
    assert time_range(low_ns, high_ns).start == pytest.approx(begin_s)


def test_colours_are_the_agreed_ones_and_no_shade_is_white() -> None:
    assert COLOURS["write"] == "#1f77b4"
    assert COLOURS["read"] == "#d62728"
    assert COLOURS.keys() == CLASSES.keys()
    assert {CLASS_OF_OP[op] for op in ("open", "close", "seek", "meta")} == {"metadata"}
    for colour in COLOURS.values():
        shades = [shade(colour, number) for number in range(8)]
        assert shades[0] == colour
        assert len(set(shades)) == 8
        assert all(min(int(each[i : i + 2], 16) for i in (1, 3, 5)) < 225 for each in shades)


def test_units_suit_the_size() -> None:
    assert time_unit(3e-5) == (1e-6, "µs")
    assert time_unit(0) == (1e-9, "ns")
    assert byte_unit(3 * 2**30) == (2**30, "GiB")
    assert share_text(0.0001, None) == "< 0.1 %"
    assert share_text(0.05, None) == "5 %"
    assert share_text(1.0, None) == "100 %"


@pytest.mark.parametrize(
    ("threads", "title", "label"),
    [
        (1, "Tasks inside a call over time (maximum 1 of 1)", "tasks"),
        (8, "Calls in progress over time (maximum 8)", "calls"),
    ],
)
def test_calls_of_several_threads_are_not_taken_for_tasks(
    tmp_path: Path, threads: int, title: str, label: str
) -> None:
    events = np.zeros(10, EVENT.dtype)
    events["call"], events["file"], events["moved"] = 6, 1, 4096
    events["start"], events["duration"] = 1000 + 1024 * np.arange(10), 1024
    write_spool(tmp_path / "s.spool", SpoolContent([events] * threads, files={1: "/d"}, head={"rank": 0}))
    inside = find(viz.trace_diagram(open_run(tmp_path)), "tasks_inside")
    assert (inside.title.text, inside.yaxis.axis_label) == (title, label)
    (hover,) = (tool for tool in inside.tools if isinstance(tool, HoverTool))
    assert ("tasks" in hover.formatters["@n_write"].code) == (label == "tasks")


def test_of_many_calls_those_with_little_time_are_one_curve_and_waiting_comes_last() -> None:
    calls = [Call(f"call{number}", "posix", "meta") for number in range(20)]
    calls += [Call("MPI_Init", "mpisync", "wait"), Call("pwrite", "posix", "write")]
    columns = {name: np.zeros(len(calls), dtype) for name, dtype in COLUMNS.items()}
    columns["call"] = np.arange(len(calls))
    columns["duration"] = np.array([*range(1, 21), 10_000, 500]) * 1_000_000
    events = Events(columns, calls, [""])
    for scale in ("linear", "log"):
        fig = viz.histogram(events, scale=scale)
        labels = legend_labels(fig)
        assert labels[:2] == ["pwrite (n = 1)", "call19 (n = 1)"]
        assert labels[3:] == ["call17 (n = 1)", "17 other functions (n = 17)", "MPI_Init (n = 1)"]
        texts = [each.text for each in fig.above if isinstance(each, Title)]
        assert any("together: call16, call15, " in text and "call5 and 5 more." in text for text in texts)
    tabs = viz.histogram(events)
    assert len({panel.child.height for panel in tabs.tabs}) == 1  # no empty band below the lower one
    few = Events({name: values[-2:] for name, values in columns.items()}, calls, [""])
    fig = viz.histogram(few, scale="linear")
    assert legend_labels(fig) == ["pwrite (n = 1)", "MPI_Init (n = 1)"]
    # The axis is that of the I/O: half a second, not ten.
    assert fig.x_range.end < 1
