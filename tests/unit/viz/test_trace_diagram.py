"""Windows, orders and bands of the trace diagram: what is drawn is the time that was spent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.model.errors import EnsioError
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.raster import CLASSES, Raster, share_image
from ensembles.viz.common.single_calls import Window
from ensembles.viz.common.task_order import ordered_raster, rows_of_tasks, window_of

HOSTS = ["b", "a", "b", "c", "a", "c"]


def made(folder: Path, calls: int = 60):
    """Six tasks with calls of random times; task 4 is the slowest, task 2 the first."""
    rng = np.random.default_rng(5)
    tasks = []
    for rank in range(6):
        at, mine = 0.001 if rank == 2 else 0.01 + 0.001 * rank, []
        for number in range(calls):
            took = float(rng.uniform(1e-4, 5e-3)) * (2 if rank == 4 else 1)
            mine.append(("pread" if number % 3 else "pwrite", at, took, 1000))
            at += took + float(rng.uniform(0, 1e-3))
        tasks.append(mine)
    return run_of(folder, tasks, lasted_s=2.0)


@pytest.fixture
def run(tmp_path: Path):
    return made(tmp_path / "run")


def diagram_of(layout):
    return layout.select_one({"name": "trace_diagram"})


def test_the_values_behind_the_colours_are_the_time_spent(run) -> None:
    events = run.events
    raster = run.summarize(lambda run: Raster(run.tasks))
    spent_ns = int(events.duration[events.depth == 0].sum())
    assert int(raster.time_ns.sum()) == spent_ns
    # And as shares of the areas of pixels, which the colours show.
    area_s = raster.tasks_of_row[:, None] * raster.cell_ns * 1e-9
    drawn_s = sum(float((raster.shares(name).astype(np.float64) * area_s).sum()) for name in CLASSES)
    assert drawn_s == pytest.approx(spent_ns * 1e-9, rel=1e-6)  # shares are of single precision
    image = share_image(raster, raster.present())
    assert image.shares.shape[:2] == raster.time_ns.shape[1:]
    assert ((image.shares > 0).any(axis=2) == (raster.time_ns > 0).any(axis=0)).all()


@pytest.mark.parametrize("order", ["rank", "slowness", "start"])
def test_ordered_rows_hold_the_time_of_their_tasks(run, order: str) -> None:
    events, rows = run.events, rows_of_tasks(run, order)
    spent = np.bincount(events.rank, events.duration, minlength=6).astype(np.int64)
    first = [int(events.start[events.rank == rank].min()) for rank in range(6)]
    expected = {
        "rank": list(range(6)),
        "slowness": sorted(range(6), key=lambda rank: -spent[rank]),
        "start": sorted(range(6), key=lambda rank: first[rank]),
    }[order]
    assert rows.ranks.tolist() == expected
    raster = ordered_raster(run, rows)
    assert raster.time_ns.sum(axis=(0, 2)).tolist() == [spent[rank] for rank in expected]
    assert expected[0] == {"rank": 0, "slowness": 4, "start": 2}[order]


def test_worker_processes_give_the_same_order(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    made(folder)
    run = en.open(folder, workers=2)
    rows = rows_of_tasks(run, "slowness")
    assert (rows.row == rows_of_tasks(en.open(folder).events, "slowness").row).all()
    window = Window(10_000_000, 50_000_000, 1, 4)
    assert (ordered_raster(run, rows).time_ns == ordered_raster(run.events, rows).time_ns).all()
    (one, calls), (other, same) = (window_of(data, window, rows) for data in (run, run.events))
    assert (one.time_ns == other.time_ns).all()
    assert calls.start.tolist() == same.start.tolist()


def test_tasks_of_a_node_are_neighbours(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank, host in enumerate(HOSTS):
        run_of(tmp_path / f"of_{rank}", [[("pwrite", 0.1, 0.1, 10)]] * 6, properties={"host": host})
        (tmp_path / f"of_{rank}" / f"{rank}.spool").rename(folder / f"{rank}.spool")
    run = en.open(folder)
    rows = rows_of_tasks(run, "node")
    assert [HOSTS[rank] for rank in rows.ranks] == ["a", "a", "b", "b", "c", "c"]
    assert rows.nodes == [("a", 0), ("b", 2), ("c", 4)]
    layout = viz.trace_diagram(run, order="node", bands=["nodes"])
    assert diagram_of(layout).select_one({"name": "node_labels"}).data_source.data["text"] == ["a", "b", "c"]
    assert list(diagram_of(layout).select_one({"name": "node_bands"}).data_source.data["y"]) == [1.5, 3.5]
    with pytest.raises(EnsioError, match="nodes are not known, or are not neighbours"):
        viz.trace_diagram(run, order="slowness", bands=["nodes"])


def test_a_window_holds_the_part_of_each_call_that_is_inside(run) -> None:
    events, rows = run.events, rows_of_tasks(run, "slowness")
    window = Window(20_000_001, 60_000_003, 1, 3)
    raster, calls = window_of(run, window, rows)
    part = np.minimum(events.end, window.high_ns) - np.maximum(events.start, window.low_ns)
    inside = (part > 0) & (rows.row[events.rank] >= 1) & (rows.row[events.rank] <= 3)
    assert int(raster.time_ns.sum()) == int(part[inside].sum())
    assert calls is not None
    assert sorted(calls.start.tolist()) == sorted(events.start[inside].tolist())


def test_a_window_with_few_calls_shows_each_with_its_numbers(run) -> None:
    layout = viz.trace_diagram(run, (0.02, 0.06), ranks=(1, 3))
    fig = diagram_of(layout)
    drawn = fig.select_one({"name": "single_calls"}).data_source.data
    events = run.events
    inside = (events.start < 60_000_000) & (events.end > 20_000_000) & (events.rank >= 1) & (events.rank <= 3)
    assert len(drawn["left"]) == int(inside.sum()) > 0
    assert f"{int(inside.sum())} calls" in fig.title.text.replace("\n", " ")
    place = int(np.argmax(np.asarray(drawn["right"]) - np.asarray(drawn["left"])))
    longest = events[np.flatnonzero(inside)].slowest(1)
    assert drawn["left"][place] == longest.start[0] * 1e-9
    assert drawn["task"][place] == f"rank {longest.rank[0]}"
    assert drawn["size"][place] == "1,000 B (1,000 B)"
    assert (fig.x_range.start, fig.x_range.end) == (0.02, 0.06)
    assert (fig.y_range.start, fig.y_range.end) == (3.5, 0.5)


def test_a_window_with_many_calls_is_a_raster(tmp_path: Path) -> None:
    run = run_of(tmp_path / "many", [[("pwrite", 1e-4 * i, 5e-5, 1) for i in range(3000)]] * 2)
    fig = diagram_of(viz.trace_diagram(run, (0.0, 0.3)))
    assert fig.select({"name": "single_calls"}) == []
    assert any("image" in each.data_source.data for each in fig.renderers if hasattr(each, "data_source"))


def test_threads_and_inner_calls_do_not_hide_each_other(tmp_path: Path) -> None:
    from ensembles.viz.common.single_calls import call_columns, has_lanes_of_threads

    run = run_of(
        tmp_path / "run", [[("pwrite", 0.1, 0.5, 1), ("pread", 0.2, 0.1, 1), ("pread", 0.2, 0.1, 1)]]
    )
    events = run.events
    events.thread[2] = 1
    events.depth[1] = 1
    assert has_lanes_of_threads(events)
    assert not has_lanes_of_threads(events[:1])
    drawn = call_columns(events)
    low, high = np.asarray(drawn["bottom"]), np.asarray(drawn["top"])
    names = list(zip(drawn["task"], drawn["call"], strict=True))
    outer, inner, other = (
        names.index(each)
        for each in (
            ("rank 0, thread 0", "pwrite"),
            ("rank 0, thread 0", "pread, inside pwrite"),
            ("rank 0, thread 1", "pread"),
        )
    )
    assert low[outer] < low[inner] < high[inner] < high[outer] <= low[other]
    assert inner > outer  # drawn later, over the outer one


def test_many_short_calls_are_as_faint_as_in_the_raster(tmp_path: Path) -> None:
    short = [("pwrite", 0.01 + 1e-3 * i, 1e-5, 1) for i in range(200)]
    few = [("pwrite", 0.01 + 0.05 * i, 1e-5, 1) for i in range(4)]
    run = run_of(tmp_path / "run", [[*short, ("pread", 0.3, 0.1, 1)], few], lasted_s=1.0)
    drawn = (
        diagram_of(viz.trace_diagram(run, (0.0, 0.5))).select_one({"name": "single_calls"}).data_source.data
    )
    outlines = {
        (task, call): set(
            np.asarray(drawn["outline"])[
                (np.asarray(drawn["task"]) == task) & (np.asarray(drawn["call"]) == call)
            ]
        )
        for task, call in zip(drawn["task"], drawn["call"], strict=True)
    }
    (faint,) = outlines.pop(("rank 0", "pwrite"))
    assert outlines == {("rank 0", "pread"): {1.0}, ("rank 1", "pwrite"): {1.0}}
    pixel_s = (np.max(drawn["right"]) - np.min(drawn["left"])) / 1000
    assert faint == pytest.approx((1e-5 / pixel_s) ** 0.4)


def test_phases_are_numbered_at_their_beginnings(run) -> None:
    fig = diagram_of(viz.trace_diagram(run, bands=["phases"]))
    starts = [row.start_s for row in run.summarize(_phases(run)).totals()]
    assert sorted(fig.select_one({"name": "phase_bands"}).data_source.data["x"]) == sorted(starts)


def _phases(run):
    from functools import partial

    from ensembles.viz.pictures.trace_annotations import _table_of

    return partial(_table_of, run.phases)


def test_outlined_calls_have_hover_boxes_and_an_entry_of_the_legend(run) -> None:
    fig = diagram_of(viz.trace_diagram(run, calls=run.events.slowest(5)))
    drawn = fig.select_one({"name": "outlined_calls"}).data_source.data
    assert sorted(drawn["left"]) == sorted(run.events.slowest(5).start * 1e-9)
    labels = [item.label.value for item in fig.above[0].items]
    assert labels[-1] == "outlined: the 5 slowest calls"


def test_slowest_calls_of_low_rows_are_circled(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [[("pwrite", 0.1, 0.2 + 0.001 * rank, 1)] for rank in range(120)])
    fig = diagram_of(viz.trace_diagram(run, calls=run.events.slowest(5)))
    drawn = fig.select_one({"name": "outlined_calls"}).data_source.data
    assert sorted(drawn["y"]) == pytest.approx([115, 116, 117, 118, 119])
    assert [item.label.value for item in fig.above[0].items][-1] == "circled: the 5 slowest calls"


def test_a_page_has_the_calls_that_a_zoom_shows(run, tmp_path: Path) -> None:
    fig = diagram_of(viz.trace_diagram(run))
    kept = next(iter(fig.select({"name": "zoomed_calls"}))).data_source
    assert len(kept.data["left"]) == 0  # until the page is zoomed
    merged = DiagramCalls(400, run.calls, run.files), DiagramCalls(400, run.calls, run.files)
    merged[0].add(run.events[:100])
    merged[1].add(run.events[100:])
    merged[0].merge(merged[1])
    assert merged[0].is_complete
    assert merged[0].count == len(run.events) == 360
    few = DiagramCalls(7, run.calls, run.files)
    for low in range(0, 360, 5):
        few.add(run.events[low : low + 5])
    assert not few.is_complete
    assert sorted(few.events.duration) == sorted(run.events.slowest(7).duration)


def test_pictures_say_what_an_ensemble_leaves_out(run) -> None:
    from ensembles.viz.common.figures import titles_of

    ensemble = run.events.ensemble()
    ensemble.left_out = ("taken are calls of 1,000 B; left out: others",)
    for draw in (viz.modes, viz.tail, viz.splitting):
        drawn = draw(ensemble) if draw is viz.modes else draw(ensemble, tasks=6)
        fig = getattr(drawn, "children", [drawn])[0]
        assert "Taken are calls of 1,000 B; left out: others" in titles_of(fig), draw.__name__


def test_wrong_arguments_are_refused(run) -> None:
    with pytest.raises(ValueError, match='there is no order "size": choose rank, node, slowness, start'):
        viz.trace_diagram(run, order="size")
    with pytest.raises(ValueError, match="the window is empty"):
        viz.trace_diagram(run, (2.0, 1.0))
    with pytest.raises(ValueError, match="there are the bands phases and nodes"):
        viz.trace_diagram(run, bands=["files"])
    with pytest.raises(TypeError, match="a run or events are needed to order tasks"):
        viz.trace_diagram(run.summarize(lambda run: Raster(run.tasks)), order="start")
    with pytest.raises(EnsioError, match="the nodes of the tasks are not known"):
        viz.trace_diagram(run.events, order="node")
