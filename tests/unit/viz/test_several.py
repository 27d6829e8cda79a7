"""Lists of runs and events: pictures below each other, linked axes; ranks and files of events."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.models import Column
from bokeh.plotting import figure
from made_runs import run_of

from ensembles import Ensemble, viz
from ensembles.comparison.report import Shift
from ensembles.faces.words import sentence
from ensembles.model.statement import Statement
from ensembles.viz.common.style import SERIES

PICTURES = ["access_map", "files", "layers", "phases", "progress", "ranks", "rate"]
PICTURES += ["trace_diagram", "modes", "tail", "targets"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list:
    folder = tmp_path_factory.mktemp("several")
    rng = np.random.default_rng(3)
    made = []
    for number, factor in enumerate((1, 2)):
        tasks = [
            [
                ("pread" if i % 3 == 0 else "pwrite", 0.1 * factor * i, float(rng.uniform(0.01, 0.05)), 4096)
                for i in range(24)
            ]
            for _ in range(4)
        ]
        made.append(run_of(folder / f"run{number}", tasks, lasted_s=3.0 * factor))
    return made


def figures(picture) -> list[figure]:
    return [model for model in picture.references() if isinstance(model, figure)]


@pytest.mark.parametrize("name", PICTURES)
def test_each_picture_takes_a_list_of_runs(runs: list, name: str) -> None:
    draw = getattr(viz, name)
    both, one = draw(runs), draw(runs[0])
    assert isinstance(both, Column)
    assert len(both.children) == 2
    first, second = (sorted(str(fig.title.text) for fig in figures(part)) for part in both.children)
    assert all(title.startswith("run0: ") for title in first)
    assert all(title.startswith("run1: ") for title in second)
    assert len(first) == len(figures(one))
    names = [model.name for model in both.references() if model.name]
    shared = [model.name for model in one.references() if model.name]
    assert len(set(names)) >= 2 * len(set(shared))  # names are unique on a page


def test_times_of_several_runs_share_their_ends(runs: list) -> None:
    data = {"a": runs[0], "b": runs[1].select(op="write")}
    ranges = [fig.x_range for fig in viz.rate(data).children]
    own = [viz.rate(each).x_range for each in data.values()]
    assert {each.start for each in ranges} == {min(each.start for each in own)}
    assert {each.end for each in ranges} == {max(each.end for each in own)}
    linked = [value for each in ranges for value in each.js_property_callbacks.values()]
    assert sum(map(len, linked)) == 4  # start and end, both ways


@pytest.mark.parametrize("by", [None, "layer"])
def test_rates_of_several_runs_have_one_scale(runs: list, by: str | None) -> None:
    """Narrower cells, or another unit, would make the peaks of one run look higher."""
    data = [runs[0].select(time="0..0.3"), runs[1]]
    alone = [viz.rate(each, by=by) for each in data]
    widths = [np.diff(fig.renderers[0].data_source.data["left"]).max() for fig in alone]
    assert 2 * widths[0] <= widths[1]
    drawn = [fig for part in viz.rate(data, by=by, separate=True).children for fig in part.children]
    for figures in (viz.rate(data, by=by).children, drawn[::2], drawn[1::2]):
        sources = [fig.renderers[0].data_source.data["left"] for fig in figures]
        assert [np.diff(each).max() for each in sources] == pytest.approx([widths[1]] * 2, rel=1e-2)
        assert len({str(fig.yaxis.axis_label) for fig in figures}) == 1
        assert figures[0].y_range is figures[1].y_range
        assert all(any(line in fig.renderers for line in fig.y_range.renderers) for fig in figures)
        steps = [str(fig.title.text).replace("\n", " ").split("mean of each ")[1][:8] for fig in figures]
        assert steps[0] == steps[1]


def test_tasks_inside_a_call_have_one_scale(runs: list) -> None:
    both = viz.trace_diagram([runs[0], runs[1].select(rank=0)])
    tops = [fig.y_range.end for fig in figures(both) if str(fig.name).startswith("tasks_inside")]
    assert len(tops) == 2
    assert tops[0] == tops[1]


def test_ranks_and_files_of_events_are_those_of_the_run(runs: list) -> None:
    run = runs[0]
    writes = run.select(op="write")
    for draw, figure_name in ((viz.ranks, "rank_time"), (viz.files, "file_time")):
        drawn, expected = (
            part.select_one({"name": figure_name}).renderers[0].data_source.data
            for part in (draw(writes), draw(run, op="write"))
        )
        for column in expected:
            np.testing.assert_array_equal(drawn[column], expected[column], column)
    with pytest.raises(ValueError, match="select the events first"):
        viz.ranks(writes, op="write")


def test_something_else_in_a_list_is_refused_by_name(runs: list) -> None:
    with pytest.raises(TypeError, match="not list"):
        viz.rate([runs[0], "a path"])
    with pytest.raises(TypeError, match="not list"):
        viz.rate([])


def test_bars_of_splitting_have_the_colours_of_their_curves() -> None:
    rng = np.random.default_rng(2)
    ensemble = Ensemble(rng.gamma(4.0, 0.01, 4096), phase=np.arange(4096) // 64, rank=np.arange(4096) % 64)
    layout = viz.splitting(ensemble, [1, 2, 4, 8], tasks=64)
    above, below = layout.children
    lines = [
        next(r for r in above.renderers if r.name == f"times_{k}").glyph.line_color for k in (1, 2, 4, 8)
    ]
    bars = below.renderers[0].data_source.data
    colours = dict(zip(bars["label"], bars["colour"], strict=True))
    assert lines == list(SERIES[:4])
    assert [colours[k] for k in (1, 2, 4, 8) if k in colours] == [
        line for k, line in zip((1, 2, 4, 8), lines, strict=True) if k in colours
    ]


def test_a_selection_does_not_call_the_rest_unrecorded(runs: list) -> None:
    title = viz.trace_diagram(runs[0].select(op="write")).select_one({"name": "trace_diagram"}).title.text
    assert title == "Trace diagram of 4 tasks; blank: no selected call"


def test_names_of_runs_stay_as_they_are_in_sentences() -> None:
    said = Statement("compare.reason", {"reason": "r/clc has 4 such calls"})
    assert sentence(said) == "r/clc has 4 such calls."
    assert not Shift("b", 10.5, 0.5, 20.0).is_certain


def test_progress_counts_outermost_calls(runs: list, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of MPI-IO above POSIX, the n-th call of a task is the n-th that the program made."""
    import ensembles as en
    from ensembles.model.events import Events

    run = runs[0]
    plain = run.select(op="write")
    inner = plain[np.arange(len(plain))]
    depth = np.ones(len(inner), inner.depth.dtype)
    doubled = Events.concatenate([plain, Events({**inner.columns, "depth": depth}, inner.calls, inner.files)])
    monkeypatch.setattr(en.Run, "select", lambda self, **filters: doubled)
    labels = [item.label.value for item in viz.progress(run, op="write", ordinal="1-2").legend[0].items]
    assert labels == ["write 1 (4)", "write 2 (4)"]
    whole = viz.progress(run, op="write")
    assert whole.title.text.endswith("(8 of 16)")
