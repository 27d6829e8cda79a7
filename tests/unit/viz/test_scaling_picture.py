"""The picture of rates against tasks, nodes or writers holds the numbers of `ensembles.answers.scaling`."""

from __future__ import annotations

import pytest
from bokeh.models import Legend, Span, Title
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.model.errors import EnsioError
from ensembles.viz.common.style import COLOURS

MIB = 1 << 20


def runs_with(folder, tasks: int, *seconds: float):
    """Runs in which each task writes 8 MiB to one file, from 0 to so many seconds."""
    for number, duration in enumerate(seconds):
        calls = [("open", 0.0, 0.0, 0), ("pwrite", 0.0, duration, 8 * MIB), ("close", duration, 0.0, 0)]
        path = folder / f"{tasks}-{number}"
        run_of(path, [calls] * tasks)
        yield en.open(path)


def columns(fig, name: str):
    (found,) = [each for each in fig.renderers if each.name == name]
    return found.data_source.data


def test_medians_ranges_and_shares_are_those_of_the_runs(tmp_path) -> None:
    """2 tasks: 16 MiB in 1, 2 and 4 s; 8 tasks: 64 MiB in 2 s; the maximum is 64 MiB/s."""
    runs = [*runs_with(tmp_path, 2, 1.0, 2.0, 4.0), *runs_with(tmp_path, 8, 2.0)]
    fig = viz.scaling(runs, maximum_bytes_per_s=64 * MIB)
    drawn = columns(fig, "range")
    assert list(drawn["at"]) == [2, 8]
    assert list(drawn["runs"]) == [3, 1]
    assert fig.yaxis[0].axis_label == "rate while files were open (MiB/s)"
    assert list(drawn["median"]) == pytest.approx([8.0, 32.0], rel=1e-6)
    assert list(drawn["low"]) == pytest.approx([4.0, 32.0], rel=1e-6)
    assert list(drawn["high"]) == pytest.approx([16.0, 32.0], rel=1e-6)
    assert list(drawn["share"]) == pytest.approx([0.125, 0.5], rel=1e-6)
    assert list(drawn["efficiency"]) == pytest.approx([1.0, 1.0], rel=1e-6)
    # 100 % of the right axis is the maximum of the left one.
    (line,) = fig.select({"type": Span})
    assert line.location == 1
    assert fig.y_range.end / fig.extra_y_ranges["share"].end == pytest.approx(64)
    (legend,) = fig.select({"type": Legend})
    assert [item.label.value for item in legend.items] == ["posix, one shared file"]
    text = " ".join(" ".join(title.text.split()) for title in fig.select({"type": Title}))
    assert "the maximum, 64.0 MiB/s, as given" in text
    assert "4 runs in all" in text


def test_without_a_maximum_the_highest_rate_is_the_maximum(tmp_path) -> None:
    fig = viz.scaling(list(runs_with(tmp_path, 2, 1.0, 2.0)), by="writers")
    assert fig.xaxis[0].axis_label == "writers"
    assert fig.title.text == "Rate of bytes written, by the number of writers"
    assert list(columns(fig, "range")["share"]) == pytest.approx([0.75], rel=1e-6)
    assert [each.glyph.line_color for each in fig.renderers if each.name == "range"] == [COLOURS["write"]]


def test_what_is_not_a_run_or_moved_nothing_is_refused(tmp_path) -> None:
    with pytest.raises(TypeError, match="runs or a Scaling are needed, not int"):
        viz.scaling([3])
    with pytest.raises(EnsioError, match="has no read that moved bytes"):
        viz.scaling(list(runs_with(tmp_path, 2, 1.0)), op="read")
