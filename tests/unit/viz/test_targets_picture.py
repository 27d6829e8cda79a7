"""The load of storage targets and diagrams of layers: what is drawn, and what the boxes of calls say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.models import Title
from made_darshan_logs import MadeLog, Segment
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.api.run import Run
from ensembles.model.errors import EnsioError
from ensembles.viz.common.single_calls import call_columns, enclosing_calls, nested_layers
from ensembles.viz.explorer.page import Explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View
from ensembles.viz.pictures.targets import load_of

MIB = 1 << 20


def log_of(folder: Path, striped: bool = True) -> Run:
    """Task 0 writes through MPI-IO, each call as two of POSIX; task 1 reads from a file on one target."""
    log = MadeLog(tasks=2, names={11: "/scratch/shared", 12: "/scratch/own", 13: "/scratch/unknown"})
    outer, inner = [], []
    for number in range(4):
        start = 1.0 + number
        outer.append(Segment(4 * MIB * number, 4 * MIB, start, start + 0.5))
        for half in range(2):
            begin = start + 0.01 + 0.25 * half
            inner.append(Segment((4 * number + 2 * half) * MIB, 2 * MIB, begin, begin + 0.2))
    log.trace("DXT_MPIIO", 11, 0, outer)
    log.trace("DXT_POSIX", 11, 0, inner)
    log.trace("DXT_POSIX", 12, 1, [], [Segment(0, MIB, 6.0, 7.0)])
    log.trace("DXT_POSIX", 13, 1, [], [Segment(0, MIB, 8.0, 8.5)])
    if striped:
        log.stripe(11, MIB, [5, 2, 9])
        log.stripe(12, MIB, [2])
    path = folder / f"made-{striped}.darshan"
    path.write_bytes(log.bytes())
    return en.open(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return log_of(tmp_path_factory.mktemp("striped"))


def find(picture, name: str):
    found = picture.select_one({"name": name})
    assert found is not None, name
    return found


def sentences(picture) -> str:
    return " | ".join(" ".join(title.text.split()) for title in picture.select({"type": Title}))


def test_images_have_the_bytes_and_calls_of_each_target(run: Run) -> None:
    picture, load = viz.targets(run), load_of(run)
    assert load is not None
    moved = find(picture, "targets_bytes").renderers[0].data_source.data
    shown = np.asarray(moved["image"][0])
    assert shown.shape == (3, len(load.edges_ns) - 1, 2)
    for number, op in enumerate(("write", "read")):
        assert ((shown[:, :, number] > 0) == (load.over_time(f"{op}_bytes") > 0)).all()
    inside = np.asarray(find(picture, "targets_calls").renderers[0].data_source.data["image"][0])
    cell_s = (load.edges_ns[1] - load.edges_ns[0]) * 1e-9
    # Seconds of calls at OST 2, 5 and 9: eight calls of two stripes, and a read of one second.
    expected = [0.2 * (6 - 1) + 1.0, 0.2 * 6, 0.2 * 5]
    np.testing.assert_allclose(np.nansum(inside, axis=1) * cell_s, expected, rtol=0.01)
    bars = find(picture, "targets_totals").renderers[0].data_source.data
    assert list(bars["target"]) == [2, 5, 9]
    assert list(bars["write_text"]) == ["5.00 MiB", "6.00 MiB", "5.00 MiB"]
    assert list(bars["read_text"]) == ["1.00 MiB", "0 B", "0 B"]
    assert "1.00 MiB of 18.0 MiB are on unknown targets, and are left out." in sentences(picture)
    assert "Bytes of each target; the busiest has 1.06 times the mean" in sentences(picture)


def test_events_need_the_run_that_has_their_layouts(run: Run) -> None:
    writes = run.select(op="write")
    text = find(viz.targets(writes), "empty").text
    assert "the layout of no file is known" in " ".join(text.split())
    assert find(viz.targets(writes, layouts=run), "targets_totals").title.text.startswith(
        "Bytes of each target"
    )


def test_a_picture_without_layouts_or_bytes_says_so(tmp_path: Path) -> None:
    for data in (log_of(tmp_path, striped=False), run_of(tmp_path / "run", [[("pwrite", 0.1, 0.1, 10)]])):
        text = " ".join(find(viz.targets(data), "empty").text.split())
        assert text.startswith("the layout of no file is known: it is recorded on Lustre")
    with pytest.raises(TypeError, match="a run, events or a TargetLoad is needed, not int"):
        viz.targets(3)


def test_a_profile_has_no_load_of_targets(tmp_path: Path) -> None:
    profile = run_of(tmp_path / "run", [[]], properties={"mode": "profile"})
    with pytest.raises(EnsioError, match="targets follow from the offsets of single calls"):
        viz.targets(profile)


def test_each_layer_has_a_diagram_with_its_time_and_shared_axes(run: Run) -> None:
    picture = viz.trace_diagram(run, layers=["mpiio", "posix"])
    above, below = (find(picture, f"trace_diagram_{layer}") for layer in ("mpiio", "posix"))
    assert above.x_range is below.x_range
    assert above.y_range is below.y_range
    assert (above.xaxis.visible, below.xaxis.visible) == (False, True)
    for fig, spent_s in ((above, [2.0, 0.0]), (below, [1.6, 1.5])):
        data = fig.renderers[0].data_source.data
        image = np.asarray(data["image"][0]).sum(axis=2) / 255
        np.testing.assert_allclose(image.sum(axis=1) * data["dw"][0] / image.shape[1], spent_s, rtol=0.01)
    # The same of a selection, in which the calls around those of POSIX are missing.
    alone = viz.trace_diagram(run.select(layer="posix"), layers=["posix"])
    again = find(alone, "trace_diagram_posix").renderers[0].data_source.data["image"][0]
    assert np.asarray(again).tolist() == np.asarray(below.renderers[0].data_source.data["image"][0]).tolist()
    with pytest.raises(ValueError, match=r"there are the layers netcdf, .*, and no others: mpi"):
        viz.trace_diagram(run, layers=["mpi"])


def test_a_window_of_layers_has_the_calls_of_each(run: Run) -> None:
    picture = viz.trace_diagram(run, (1.1, 2.9), layers=["mpiio", "posix"])
    calls = {
        layer: find(find(picture, f"trace_diagram_{layer}"), "single_calls").data_source.data
        for layer in ("mpiio", "posix")
    }
    assert list(calls["mpiio"]["call"]) == ["MPI_File_write"] * 2
    assert list(calls["posix"]["call"]) == ["write, inside MPI_File_write"] * 4
    heights = {name: np.asarray(data["top"]) - np.asarray(data["bottom"]) for name, data in calls.items()}
    assert heights["posix"].min() == heights["mpiio"].min() > 0.8


def test_calls_of_layers_have_lanes_in_the_row_of_their_task(run: Run) -> None:
    events = run.events
    assert nested_layers(events) == ["mpiio", "posix"]
    assert nested_layers(run.select(layer="posix")) == []
    drawn = call_columns(events, layers=nested_layers(events))
    layer = np.array(drawn["layer"])
    low, high = np.asarray(drawn["bottom"]), np.asarray(drawn["top"])
    task_0 = np.array(drawn["task"]) == "rank 0"
    assert high[layer == "mpiio"].max() < low[(layer == "posix") & task_0].min()
    assert -0.5 < low.min() < high.max() < 1.5
    text = sentences(viz.trace_diagram(run, (1.1, 2.9)))
    assert "In each row, calls of mpiio are above those of posix." in text
    assert "In each row" not in sentences(viz.trace_diagram(run, (6.0, 9.0)))


def test_the_call_around_is_the_innermost_one_of_the_thread(run: Run) -> None:
    """Against each pair of calls."""
    events = run.events
    found = enclosing_calls(events).tolist()
    for inner in range(len(events)):
        around = [
            outer
            for outer in range(len(events))
            if events.depth[outer] == events.depth[inner] - 1.0
            and events.rank[outer] == events.rank[inner]
            and events.start[outer] <= events.start[inner]
            and events.end[outer] >= events.end[inner]
        ]
        assert found[inner] == (around[-1] if around else -1)
    assert sum(outer >= 0 for outer in found) == 8


def test_boxes_of_calls_name_their_storage_targets(run: Run, tmp_path: Path) -> None:
    fig = find(viz.trace_diagram(run, (0.0, 9.0)), "trace_diagram")
    drawn = find(fig, "single_calls").data_source.data
    named = dict(
        zip(zip(drawn["layer"], drawn["where"], drawn["file"], strict=True), drawn["targets"], strict=True)
    )
    assert named["posix", "0 B", "/scratch/shared"] == "OSTs 5, 2"
    assert named["posix", f"{2 * MIB:,} B", "/scratch/shared"] == "OSTs 9, 5"
    assert named["posix", "0 B", "/scratch/own"] == "OST 2"
    assert named["posix", "0 B", "/scratch/unknown"] == "unknown"
    assert named["mpiio", "0 B", "/scratch/shared"] == "those of the calls inside"
    rows = [
        name for tool in fig.hover if "@call" in dict(tool.tooltips).values() for name, _ in tool.tooltips
    ]
    assert "storage targets" in rows
    # Boxes at the middle of a call are not shown where the call reaches far beyond the window.
    assert [tool.point_policy for tool in fig.hover] == ["follow_mouse"]
    without = find(viz.trace_diagram(log_of(tmp_path, striped=False), (0.0, 9.0)), "trace_diagram")
    assert "storage targets" not in [name for tool in without.hover for name, _ in tool.tooltips]


def test_the_report_has_targets_and_layers(run: Run, tmp_path: Path) -> None:
    viz.write_report(run, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Layers: calls of mpiio above those of posix" in page
    assert "Storage targets: 3 of 3 reached, the busiest has 1.06 times the mean" in page
    viz.write_report(log_of(tmp_path, striped=False), tmp_path / "without.html")
    assert "Storage targets:" not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_the_explorer_draws_layers_in_lanes_and_calls_inside_others(run: Run) -> None:
    explorer = Explorer([Shown(run)], View(zoom_s=(1.1, 2.9)))
    fig = find(explorer.layout, "explorer_trace")
    assert "in each row, mpiio above posix" in " ".join(fig.title.text.split())
    drawn = find(fig, "single_calls").data_source.data
    assert "write, inside MPI_File_write" in list(drawn["call"])
    assert "OSTs 5, 2" in list(drawn["targets"])
    posix = explorer.shown.calls(View(filters={"layer": "posix"}))
    assert posix.raster().time_ns.sum() == run.select(layer="posix").duration.sum()


def test_the_explorer_draws_layers_and_targets_of_the_marked_calls_when_asked(run: Run) -> None:
    explorer = Explorer([Shown(run)], View())
    drawn = find(explorer.layout, "more_pictures")
    assert drawn.children == [explorer._more._none]
    press(explorer, "draw_by_layer")
    fig = find(drawn, "trace_diagram_posix")
    assert fig.x_range is find(explorer.layout, "explorer_trace").x_range
    assert "Of 14 shown calls" in find(explorer.layout, "about_more").text
    explorer.look(View(ranks=(1, 1)))
    press(explorer, "draw_by_layer")
    assert "These calls are of one layer: posix." in find(explorer.layout, "about_more").text
    press(explorer, "draw_targets")
    read = find(drawn, "targets_totals").renderers[0].data_source.data["read_text"]
    assert next(iter(read)) == "1.00 MiB"
    explorer.look(View(filters={"op": "read"}))
    assert drawn.children == [explorer._more._none]


def press(explorer: Explorer, name: str) -> None:
    from bokeh.events import ButtonClick

    button = find(explorer.layout, name)
    button._trigger_event(ButtonClick(button))
