"""Pictures of a whole run hold the numbers of its tables: ranks, files, phases, layers, sizes, offsets."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import HoverTool, Legend, Quad, Step, Title
from bokeh.plotting import figure
from made_runs import run_of
from synthetic_runs import synthetic_run

import ensembles
from ensembles import viz
from ensembles.answers.phases import answer_phases
from ensembles.model.errors import EnsioError
from ensembles.model.units import bytes_text
from ensembles.passes.summary import ignoring_run
from ensembles.structure.phases.table import PhaseTable
from ensembles.summaries.runtotals import RunTotals
from ensembles.viz.common.style import COLOURS
from ensembles.viz.report.folded import _of_phases

MIB = 1 << 20

# Task 1 is slower, and the second phase reads.
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.1, 0.2, MIB), ("pread", 1.0, 0.1, MIB), ("close", 2.0, 0.01, 0)],
    [("open", 0.0, 0.02, 0), ("pwrite", 0.1, 0.5, MIB), ("pread", 1.0, 0.3, MIB), ("close", 2.0, 0.02, 0)],
]


@pytest.fixture
def run(tmp_path: Path):
    return run_of(tmp_path / "run", TASKS, lasted_s=3.0)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory):
    """8 tasks, 5 phases of 4 writes and 5 of 4 reads, at offsets in one file."""
    folder = tmp_path_factory.mktemp("synthetic") / "run"
    synthetic_run(folder, tasks=8, events_per_task=42)
    return ensembles.open(folder)


def find(picture, name: str):
    found = picture.select_one({"name": name})
    assert found is not None, name
    return found


def sentences(picture) -> str:
    return " | ".join(" ".join(title.text.split()) for title in picture.select({"type": Title}))


def labels(fig) -> list[str]:
    return [item.label.value for legend in fig.select({"type": Legend}) for item in legend.items]


def data(renderer) -> dict:
    return {name: np.asarray(values) for name, values in renderer.data_source.data.items()}


def test_bars_of_ranks_are_those_of_the_table(run) -> None:
    table = sorted(run.by_rank(), key=lambda row: row.rank)
    picture = viz.ranks(run)
    bars = data(find(picture, "rank_time").renderers[0])
    np.testing.assert_allclose(bars["io"], [row.io_time_s for row in table])
    written, read = find(picture, "rank_bytes").renderers
    both = data(read)
    heights = [both[written.glyph.top], both[read.glyph.top] - both[read.glyph.bottom]]
    for height, moved in zip(heights, ("bytes_written", "bytes_read"), strict=True):
        values = [getattr(row, moved) for row in table]
        np.testing.assert_allclose(height / height.sum(), np.array(values) / sum(values))
    assert both["write_text"].tolist() == [bytes_text(row.bytes_written) for row in table]
    longest = data(find(picture, "rank_longest").renderers[0])
    np.testing.assert_allclose(longest["longest"], [row.longest_s for row in table])
    assert "Rank 1 was longest in I/O: 840 ms" in sentences(picture)
    again = data(find(viz.ranks(table), "rank_time").renderers[0])
    np.testing.assert_array_equal(again["io"], bars["io"])


def test_ranks_without_calls_are_drawn_and_filters_apply(tmp_path: Path) -> None:
    quiet = run_of(tmp_path / "quiet", [*TASKS, []])
    bars = data(find(viz.ranks(quiet, op="read"), "rank_time").renderers[0])
    np.testing.assert_allclose(bars["io"], [0.1, 0.3, 0.0])


def test_many_ranks_share_bars(tmp_path: Path) -> None:
    calls = [[("pwrite", 0.0, 1e-3 * (1 + rank % 3), 8)] for rank in range(1500)]
    picture = viz.ranks(run_of(tmp_path / "many", calls))
    bars = data(find(picture, "rank_time").renderers[0])
    assert len(bars["io"]) == 500
    np.testing.assert_allclose(bars["io"], 2e-3)
    np.testing.assert_allclose(bars["most"], 3e-3)
    assert (bars["name"][0], bars["name"][-1]) == ("ranks 0–2", "ranks 1497–1499")
    glyphs = [each.glyph for fig in picture.children for each in fig.renderers]
    assert all(each.line_color == each.fill_color for each in glyphs if isinstance(each, Quad))
    assert "mean of 3 ranks" in sentences(picture)
    # One line has the largest ranks of all bars, and the mark of the first one is not cut by the frame.
    (line,) = (each for each in find(picture, "rank_time").renderers if isinstance(each.glyph, Step))
    assert len(line.data_source.data["most"]) == 501
    assert picture.children[0].x_range.start < -10


def test_bars_of_files_are_those_of_the_table(run) -> None:
    (row,) = [file for file in run.by_file() if file.path]
    picture = viz.files(run)
    assert data(find(picture, "file_time").renderers[0])["right"][0] == pytest.approx(row.io_time_s)
    written, read = (data(each) for each in find(picture, "file_bytes").renderers[:2])
    assert (written["right"] - written["left"])[0] * MIB == row.bytes_written
    assert (read["right"] - read["left"])[0] * MIB == row.bytes_read
    assert data(find(picture, "file_longest").renderers[0])["right"][0] == row.longest_s == 0.5
    assert data(find(picture, "file_time").renderers[-1])["label"][0].startswith("/scratch/data.out: 1.")


def test_few_of_many_files_are_drawn(tmp_path: Path) -> None:
    rows = viz_rows(run_of(tmp_path / "run", TASKS), 12)
    fig = find(viz.files(rows), "file_time")
    assert fig.title.text == "Time in I/O: 8 of 12 files"
    drawn = data(fig.renderers[0])["right"]
    assert drawn.tolist() == sorted(drawn.tolist(), reverse=True)


def viz_rows(run, count: int) -> list:
    """Rows of a table of files, each with another path and time."""

    (row,) = [file for file in run.by_file() if file.path]
    return [replace(row, path=f"/scratch/{number}", io_time_s=float(number + 1)) for number in range(count)]


def test_gantt_has_the_phases_of_the_table(synthetic) -> None:
    totals = synthetic.summarize(partial(_table_of, synthetic.phases)).totals()
    fig = viz.phases(synthetic)
    rows = [data(renderer) for renderer in fig.renderers]
    starts = np.sort(np.concatenate([row["start"] for row in rows[::3] if "start" in row]))
    np.testing.assert_allclose(starts, [row.start_s for row in totals])
    bars = {
        float(y): (s, b, e)
        for r in rows[::3]
        if "busy_end" in r
        for y, s, b, e in zip(r["y"], r["start"], r["busy_end"], r["end"], strict=True)
    }
    for number, row in enumerate(totals):
        start, busy_end, end = bars[number]
        assert (start, end) == (row.start_s, row.end_s)
        assert end - busy_end == pytest.approx(row.lost_s / row.tasks)
    assert labels(fig) == ["writes", "reads", "no data moved", "mean wait for the slowest task"]
    assert fig.title.text == f"{len(totals)} phases"
    again = viz.phases(answer_phases(synthetic))
    np.testing.assert_array_equal(data(again.renderers[0])["start"], rows[0]["start"])


def _table_of(found, _):
    return PhaseTable(found)


def test_many_phases_are_those_with_the_most_waiting(synthetic) -> None:

    totals = synthetic.summarize(partial(_table_of, synthetic.phases)).totals()
    many = tuple(replace(totals[1], phase=number, lost_s=number / 1e3) for number in range(1, 61))
    fig = viz.phases(replace(answer_phases(synthetic), phases=many))
    title = "40 of 60 phases: those with the most waiting for the slowest task"
    assert fig.title.text.replace("\n", " ") == title
    assert fig.yaxis.major_label_overrides[0] == "21"


def test_phases_that_are_mostly_syncs_have_their_colour(tmp_path: Path) -> None:
    tasks = [[("pwrite", 0.0, 0.01, 8), ("fsync", 0.01, 0.09, 0), ("pwrite", 9.0, 0.1, 8)]] * 2
    run = run_of(tmp_path / "syncs", tasks, lasted_s=10.0)
    for fig in (viz.phases(run), _of_phases(answer_phases(run)).picture):
        labels = [item.label.value for item in fig.legend[0].items]
        assert labels == ["writes", "mostly syncs", "mean wait for the slowest task"]
        bars = fig.legend[0].items[1].renderers[0]
        assert bars.glyph.fill_color == COLOURS["sync"]
        assert data(bars)["busy_end"] == pytest.approx([0.1])


def test_layers_are_those_of_the_totals(run) -> None:
    layers = run.summarize(ignoring_run(RunTotals)).layers.layers
    bars = data(viz.layers(run).renderers[0])
    assert bars["layer"].tolist() == list(layers)
    np.testing.assert_allclose(bars["exclusive_s"], [each.exclusive_ns * 1e-9 for each in layers.values()])


def test_the_title_of_an_access_map_has_the_end_of_a_long_path(tmp_path: Path) -> None:
    path = "/scratch/" + 20 * "of-many-parts/" + "the-last.dat"
    run = run_of(tmp_path / "run", [[("pwrite", 0.1, 0.1, 1000)]], path=path)
    title = viz.access_map(run).children[0].title.text
    assert max(map(len, title.splitlines())) < 100
    assert "the-last.dat: bytes by offset" in title.replace("\n", " ")


def test_access_map_has_the_bytes_of_each_offset(synthetic) -> None:
    picture = viz.access_map(synthetic)
    assert labels(find(picture, "access_by_time")) == ["written by posix: 160 MiB", "read by posix: 160 MiB"]
    by_rank = find(picture, "access_by_rank")
    assert labels(by_rank)[2:] == ["both"]  # the ranks read what they wrote, later
    assert "$x" not in by_rank.select_one(HoverTool).formatters  # a rank is not a time
    image = by_rank.renderers[0].data_source.data["image"][0]
    edges = np.linspace(by_rank.y_range.start, by_rank.y_range.end, len(image) + 1)
    writes = synthetic.select(op="write")
    for rank in range(8):
        offsets = writes.offset[writes.rank == rank]
        expected, _ = np.histogram(offsets, edges)
        starts = image[:, rank, 0] > 0
        assert starts[expected > 0].all()
        assert (
            ~starts[
                np.histogram(np.concatenate([offsets, offsets + MIB // 2, offsets + MIB - 1]), edges)[0] == 0
            ]
        ).all()
    events = viz.access_map(synthetic.select(op="write"))
    assert labels(find(events, "access_by_rank")) == ["written by posix: 160 MiB"]
    with pytest.raises(EnsioError, match="has no file /no/such"):
        viz.access_map(synthetic, "/no/such")


def test_rates_on_axes_of_their_own(run) -> None:
    picture = viz.rate(run, separate=True)
    write, read = find(picture, "rate_write"), find(picture, "rate_read")
    assert write.x_range is read.x_range
    assert labels(write)[0].startswith("write: 2.00 MiB")
    together = data(viz.rate(run).renderers[-1])
    np.testing.assert_allclose(data(write.renderers[-1])["write"], together["write"])


ODD = {
    "one call": [[("pwrite", 0.5, 0.1, 4096)]],
    "no calls": [[], []],
    "metadata only": [[("open", 0.5, 0.1, 0), ("close", 0.7, 0.0, 0)]],
    "no duration": [[("pwrite", 0.5, 0.0, 10)]],
    "reads only": [[("pread", 0.5, 0.1, 4096)], [("pread", 0.5, 0.1, 4096)]],
}
OF_RUNS = (
    "access_map",
    "files",
    "layers",
    "phases",
    "ranks",
    "rate",
    "splitting",
    "tail",
    "targets",
)


@pytest.mark.parametrize("calls", ODD.values(), ids=ODD)
@pytest.mark.parametrize("name", OF_RUNS)
def test_every_picture_is_drawn_of_odd_runs(tmp_path: Path, name: str, calls) -> None:
    document = Document()
    picture = getattr(viz, name)(run_of(tmp_path / "run", calls))
    document.add_root(picture)
    assert document.to_json(deferred=False)["roots"]
    for fig in picture.select({"type": figure}):
        if any(each.name == "empty" for each in fig.center) and not fig.xaxis[0].axis_label:
            assert not fig.xaxis[0].visible  # the numbers of an axis without data say nothing


@pytest.mark.parametrize("name", OF_RUNS)
def test_something_else_is_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match="needed, not int"):
        getattr(viz, name)(42)
