"""Rates by layer, histograms by request size, and rates above durations per MiB."""

from __future__ import annotations

import re

import numpy as np
import pytest
from bokeh.models import Legend, LinearAxis, LogAxis
from bokeh.plotting import figure
from builders import make_events

import ensembles as en
from ensembles import viz
from ensembles.api.run import Events
from ensembles.model.events import Call
from ensembles.viz.common.figures import titles_of
from ensembles.viz.common.style import COLOURS
from ensembles.viz.pictures.histogram import ensembles_by_size

MIB = 1 << 20
LAYERS = [
    Call("MPI_File_write_at", "mpiio", "write"),
    Call("pwrite", "posix", "write"),
    Call("read", "posix", "read"),
    Call("MPI_Barrier", "mpisync", "wait"),
]


def events_of(rows: list[tuple[int, int, int, int, int]]) -> Events:
    """Calls of rank 0: number of the function, depth, start and duration in ms, bytes."""
    call, depth, start, duration, size = np.array(rows).T
    zeros = np.zeros(len(rows), int)
    columns = {"rank": zeros, "thread": zeros, "file": zeros, "error": zeros, "offset": zeros}
    columns |= {"call": call, "depth": depth, "start": start * 10**6, "duration": duration * 10**6}
    columns |= {"requested": size, "moved": size}
    return Events(columns, LAYERS, ["/scratch/data"])


@pytest.fixture
def layered() -> Events:
    """MPI-IO writes of 1 s whose POSIX writes take the last half second, and a read outside of them."""
    rows = []
    for start in (0, 2000, 4000):
        rows += [(0, 0, start, 1000, 8 * MIB), (1, 1, start + 500, 500, 8 * MIB)]
    return events_of([*rows, (2, 0, 6000, 250, MIB)])


def legend(fig: figure) -> list[str]:
    return [item.label.value for one in fig.select({"type": Legend}) for item in one.items]


def area_bytes(fig: figure, column: str) -> float:
    (line,) = [each for each in fig.renderers if each.name == column]
    data = line.data_source.data
    unit = {"MiB/s": MIB, "GiB/s": 1 << 30}[fig.yaxis.axis_label.split("(")[1][:-1]]
    return float((np.array(data[column], float)[:-1] * np.diff(np.array(data["left"], float))).sum() * unit)


def test_each_layer_has_a_curve_with_its_bytes(layered: Events) -> None:
    fig = viz.rate(layered, by="layer")
    assert [each.partition(":")[0] for each in legend(fig)] == ["mpiio write", "posix write", "posix read"]
    assert area_bytes(fig, "mpiio_write") == pytest.approx(24 * MIB, rel=1e-3)
    assert area_bytes(fig, "posix_write") == pytest.approx(24 * MIB, rel=1e-3)
    assert area_bytes(fig, "posix_read") == pytest.approx(MIB, rel=1e-3)
    (line,) = [each for each in fig.renderers if each.name == "posix_write"]
    # Below the calls of the library, data moves half as long and twice as fast.
    data = line.data_source.data
    assert max(data["posix_write"]) == pytest.approx(2 * max(data["mpiio_write"]), rel=0.01)
    inside = (np.array(data["left"]) > 0.1) & (np.array(data["left"]) < 0.45)
    assert not np.array(data["posix_write"])[inside].any()
    assert np.array(data["mpiio_write"])[inside].all()
    looks = {(each.glyph.line_color, str(each.glyph.line_dash)) for each in fig.renderers if each.name}
    assert len(looks) == 3


def test_a_diagram_says_what_one_would_overlook(layered: Events) -> None:
    def titles(layout) -> list[str]:
        return titles_of(layout.select_one({"name": "trace_diagram"}))

    words = "Trace diagram of 1 task, outermost calls; blank: no selected call"
    assert titles(viz.trace_diagram(layered)) == [words]
    both = viz.trace_diagram(layered, layers=["hdf5", "posix"])
    # A layer without calls is a line, not an empty frame.
    empty, full = (both.select_one({"name": f"trace_diagram_{name}"}) for name in ("hdf5", "posix"))
    assert empty.height < 100 < full.height
    # The I/O takes 2 % of the time, in which the task waits.
    late = events_of([(3, 0, 0, 9800, 0), (2, 0, 9800, 199, MIB)])
    first, second = titles(viz.trace_diagram(late))
    assert first == "Trace diagram of 1 task; blank: no selected call"
    assert re.fullmatch(r"All I/O is from 9\.80 s to 10\.0 s, 2 % of the time: drag over it to .*", second)
    bars = viz.layers(late)
    by_layer = bars.renderers[0].data_source.data
    assert by_layer["colour"][by_layer["layer"].index("mpisync")] == COLOURS["wait"]
    assert "mpisync (waiting in MPI): 1 call, 9.80 s exclusive" in by_layer["label"]


def test_rates_of_layers_have_axes_of_their_own_too(layered: Events) -> None:
    both = viz.rate(layered, by="layer", separate=True, title="Layers")
    assert [fig.name for fig in both.children] == ["rate_write", "rate_read"]
    assert [len(legend(fig)) for fig in both.children] == [2, 1]
    assert both.children[0].x_range is both.children[1].x_range
    assert both.children[1].title.text == "Layers (read)"
    with pytest.raises(ValueError, match='not by "file"'):
        viz.rate(layered, by="file")
    with pytest.raises(TypeError, match="need a run or events"):
        viz.rate(en.Ensemble([1.0]), by="layer")
    nothing = viz.rate(layered[:0], by="layer")
    assert nothing.renderers == []
    # A zoom of the axes does not move it.
    assert nothing.select_one({"name": "empty"}).x.target == "frame"


def test_each_size_has_a_curve(layered: Events) -> None:
    fig = viz.histogram(layered[1:], by="size", scale="log")
    assert legend(fig) == ["write 8.00 MiB (n = 5)", "read 1.00 MiB (n = 1)"]
    fig = viz.histogram(layered, by="size", per="MiB", scale="linear")
    assert legend(fig) == ["write 8.00 MiB (n = 6)", "read 1.00 MiB (n = 1)"]
    assert fig.xaxis[-1].axis_label.startswith("duration per MiB")
    # Names keep their commas; a dollar would begin a formula.
    fig = viz.histogram({"write, pwrite of a$b": layered.ensemble()}, scale="log")
    assert legend(fig)[0].startswith("write, pwrite of a?b (n = ")
    with pytest.raises(ValueError, match='not by "rank"'):
        viz.histogram(layered, by="rank")
    with pytest.raises(ValueError, match='needs by="size"'):
        viz.histogram(layered, per="MiB")


def test_many_sizes_are_octaves_and_those_with_most_time_are_drawn() -> None:
    sizes = [*(2**power for power in range(10, 20)), 1500, 1100]
    events = events_of([(1, 0, 100 * at, 1 + at, size) for at, size in enumerate(sizes)])
    ensembles, count = ensembles_by_size(events)
    assert count == 10
    assert len(ensembles) == 6
    assert ensembles["write 1.00 KiB – 2.00 KiB"].n == 3
    assert list(ensembles)[-1] == "write 512 KiB – 1.00 MiB"
    fig = viz.histogram(events, by="size", scale="log")
    assert fig.title.text.replace("\n", " ").endswith("the 6 of 10 sizes that took the most time")
    assert "write 1.00 KiB – 2.00 KiB (n = 3)" in legend(fig)


@pytest.mark.parametrize(("scale", "kind"), [("linear", LinearAxis), ("log", LogAxis)])
def test_durations_per_mib_have_the_rate_above(layered: Events, scale: str, kind: type) -> None:
    fig = viz.histogram([layered.ensemble(per="MiB")], scale=scale)
    (axis,) = [each for each in fig.above if isinstance(each, LinearAxis | LogAxis)]
    assert type(axis) is kind
    assert axis.axis_label == "rate of a call (MiB/s)"
    assert "1 / tick" in axis.formatter.code
    per_call = viz.histogram([layered.ensemble()], scale=scale)
    assert not [each for each in per_call.above if isinstance(each, LinearAxis | LogAxis)]


def test_notes_of_a_histogram_share_brackets() -> None:
    calls = [Call(f"call{number}", "posix", "meta") for number in range(30)]
    events = make_events({"call": np.arange(30), "duration": 1000 * np.arange(30)}, calls)
    title = re.sub(r"\s", " ", viz.histogram(events, scale="log").title.text)
    assert title.endswith(" (1 call took 0 ns, below the clock, and is not drawn)")
    assert title.count("(") == 1
