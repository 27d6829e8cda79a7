"""The explorer marks exactly the calls that its command and its Python select; a link restores the view."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.events import ButtonClick, SelectionGeometry
from bokeh.models.widgets import Div
from made_darshan_logs import traced_log
from made_runs import run_of

import ensembles
from ensembles.cli.main import main
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.viz.common.style import COLOURS, darker
from ensembles.viz.explorer.layout import name_of
from ensembles.viz.explorer.page import Explorer, add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.sums import RankSums
from ensembles.viz.explorer.view import View

TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
    [("open", 0.1, 0.02, 0), ("pwrite", 0.3, 0.02, 1 << 20)],
]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(run_of(tmp_path / "run", TASKS))


def explore(shown: Shown, query: str = "") -> tuple[Document, Explorer]:
    document = Document()
    return document, add_explorer(document, [shown], dict(parse_qsl(query)))


def geometry(x0: float, x1: float, y0: float, y1: float) -> dict:
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1}


def same(one, other) -> bool:
    return all((getattr(one, name) == getattr(other, name)).all() for name in COLUMNS)


VIEWS = [
    View(),
    View(filters={"op": "write"}),
    View(time_s=(0.1, 0.6), ranks=(1, 2)),
    View(filters={"rank": "0-1", "time": "0.2.."}, time_s=(0.0, 0.6), ranks=(1, 2)),
    View(filters={"call": "open,pwrite"}, durations_s=(0.015, 0.1)),
    View(filters={"duration": "15ms..,1us..2us"}, durations_s=(0.0, 0.1)),
    View(filters={"per_byte": "yes"}, rates=(2 << 20, 60 << 20)),
    View(filters={"rate": "3MiB..,1000..2MiB"}, rates=(1 << 20, 60 << 20)),
    View(filters={"file": "/scratch/*", "size": "1MiB", "ordinal": "1"}, ranks=(0, 0)),
]


@pytest.mark.parametrize("view", VIEWS)
def test_python_of_a_view_selects_the_marked_calls(shown: Shown, view: View) -> None:
    names: dict = {}
    exec(view.python(shown.run.path), names)
    marked = shown.marked(view)
    assert len(marked)
    assert same(marked, names["calls"])


@pytest.mark.parametrize("view", VIEWS)
def test_command_of_a_view_lists_the_marked_calls(shown: Shown, view: View, capsys) -> None:
    import shlex

    words = shlex.split(view.command(shown.run.path))
    assert words[0] == "ensio"
    assert main([*words[1:], "--format", "jsonl"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    marked = shown.marked(view)
    assert [call["rank"] for call in listed] == marked.rank.tolist()
    assert len(listed) == len(marked) > 0


@pytest.mark.parametrize("view", VIEWS)
def test_a_link_restores_the_view(shown: Shown, view: View) -> None:
    assert View.from_query(dict(parse_qsl(view.query()))) == view
    document, explorer = explore(shown, view.query())
    assert explorer.view == view
    assert document.select_one({"name": "link"}).data["query"] == [view.query()]


def test_times_are_copied_without_the_noise_of_sums() -> None:
    view = View(time_s=(0.1 + 0.2, 0.35756345700000003), offsets=(0, 1 << 20))
    assert "--time 0.3..0.357563457 --where offset=0..1048576" in view.command("run")
    assert "time='0.3..0.357563457'" in view.python("run")
    assert View.from_query(dict(parse_qsl(view.query()))).time_s == (0.3, 0.357563457)


def test_a_range_of_seconds_per_mib_marks_calls_by_their_rate(shown: Shown) -> None:
    document, explorer = explore(shown, "per_byte=yes")
    assert explorer._panels[0].calls.count == 4  # without those that opened files
    histogram = document.select_one({"name": "explorer_histogram"})
    assert str(histogram.below[0].axis_label).startswith("duration per MiB")
    assert histogram.above[0].axis_label == "rate of a call (MiB/s)"
    reads = explorer._panels[0].durations._all["read"].data
    assert reads["left"][0] <= 1.0 <= reads["right"][0]  # 512 KiB in 0.5 s
    histogram._trigger_event(SelectionGeometry(histogram, geometry(0.4, 1.25, 1, 10), final=True))
    assert explorer.view.rates == (838900, 2621000)
    slowest = document.select_one({"name": "slowest"}).source.data
    assert slowest["call"] == ["pwrite", "pread"]
    command, python = (document.select_one({"name": "texts"}).data[name][0] for name in ("command", "python"))
    assert command.endswith("--per-byte --where rate=838900..2621000 --format csv")
    assert python.endswith(".select(per_byte=True, rate='838900..2621000')")
    box = explorer._panels[0].durations._box
    assert (box.visible, round(box.left, 3), round(box.right, 3)) == (True, 0.4, 1.25)
    panel = explorer._panels[0]
    assert panel.shown.ensemble(explorer.view).per == "MiB"
    marked = explorer._panels[0].durations._marked
    explorer.look(explorer.view.marking(ranks=(2, 2)))
    assert {name: source.data["top"] for name, source in marked.items() if len(source.data["top"])} == {
        "write": [1]
    }
    explorer.look(View())
    histogram = document.select_one({"name": "explorer_histogram"})
    assert str(histogram.below[0].axis_label).startswith("call duration")


def test_a_link_with_another_value_per_byte_is_refused(shown: Shown) -> None:
    document, explorer = explore(shown, "per_byte=1")
    assert "write per_byte=yes" in document.select_one({"name": "message"}).text
    assert explorer.view == View()


def test_a_range_of_durations_marks_who_and_when(shown: Shown) -> None:
    document, explorer = explore(shown)
    histogram = document.select_one({"name": "explorer_histogram"})
    histogram._trigger_event(SelectionGeometry(histogram, geometry(0.4, 0.9, 1, 10), final=True))
    slowest = document.select_one({"name": "slowest"}).source.data
    assert slowest["rank"].tolist() == [0, 1]
    assert slowest["start_s"].tolist() == [0.25, 0.5]
    assert slowest["file"] == ["/scratch/data.out"] * 2
    assert document.select_one({"name": "by_rank"}).source.data["rank"].tolist() == [0, 1]
    assert explorer.view.durations_s == (0.4, 0.9)
    image = marked_image(document)
    assert image[0].any()
    assert image[1].any()
    assert not image[2].any()


def marked_image(document: Document) -> np.ndarray:
    """The image of the marked calls: the second of the trace diagram."""
    images = [
        each
        for each in document.select_one({"name": "explorer_trace"}).renderers
        if "image" in each.data_source.data
    ]
    return images[1].data_source.data["image"][0]


def test_a_rectangle_marks_its_ensemble(shown: Shown) -> None:
    document, explorer = explore(shown)
    trace = document.select_one({"name": "explorer_trace"})
    trace._trigger_event(SelectionGeometry(trace, geometry(0.2, 0.6, 0.4, -0.4), final=True))
    assert (explorer.view.time_s, explorer.view.ranks) == ((0.2, 0.6), (0, 0))
    filled = document.select_one({"name": "marked_write"}).data_source.data
    assert filled["top"].tolist() == [1]
    assert filled["left"][0] <= 0.5 <= filled["right"][0]
    assert "1 call is marked" in document.select_one({"name": "found"}).text
    assert document.select_one({"name": "marked_read"}).data_source.data["top"] == []


def test_the_counts_behind_the_histogram_are_all_calls(shown: Shown) -> None:
    counted = shown.calls(View()).durations()
    assert {name: int(counts.sum()) for name, (_, counts) in counted.items()} == {
        "metadata": 3,
        "write": 3,
        "read": 1,
    }


def test_time_by_rank_is_the_sum_of_durations(shown: Shown) -> None:
    table = shown.calls(View()).by_rank()
    assert dict(zip(table["rank"].tolist(), table["calls"].tolist(), strict=True)) == {0: 3, 1: 2, 2: 2}
    assert np.allclose(table["time_s"], [0.53, 0.52, 0.04])
    assert shown.calls(View()).slowest()["duration_s"][0] == pytest.approx(0.5)


def test_a_wrong_filter_is_reported_and_the_view_kept(shown: Shown) -> None:
    document, explorer = explore(shown, "op=write")
    explorer.look(View(filters={"op": "<b>wrte"}))
    message = document.select_one({"name": "message"}).text
    assert "&lt;b&gt;wrte" in message
    assert "<b>" not in message
    assert explorer.view == View(filters={"op": "write"})


@pytest.mark.parametrize(
    "query",
    ["run=7", "run=-1", "marked-time=5", "marked-time=5..x", "marked-durations=2..1", "op=" + 2000 * "x"],
)
def test_a_malformed_link_shows_the_whole_run_and_says_why(shown: Shown, query: str) -> None:
    with pytest.raises(EnsioError):
        View.from_query(dict(parse_qsl(query)))
    document, explorer = explore(shown, query)
    assert explorer.view == View()
    assert "role" in document.select_one({"name": "message"}).text


def test_a_rectangle_outside_of_the_filter_is_refused(shown: Shown) -> None:
    with pytest.raises(EnsioError, match="outside"):
        View(filters={"rank": "0"}, ranks=(1, 2)).selecting()


def test_a_large_run_is_shown_in_part_and_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path / "large", [[("pwrite", 0.1 * i, 0.05, 10) for i in range(8)]] * 10)
    part = Shown(run, most_events=20)
    assert len(part.events) < len(ensembles.open(run.path).events)
    assert "Part of the run: all" in part.notes[0]
    document, _ = explore(part)
    assert part.notes[0].split(":")[0] in document.select_one({"name": "message"}).text


def test_another_run_is_shown_with_the_same_filters(shown: Shown, tmp_path: Path) -> None:
    other = Shown(run_of(tmp_path / "other", TASKS[1:]))
    document = Document()
    explorer = add_explorer(document, [shown, other], {"op": "write", "marked-ranks": "0..0"})
    document.select_one({"name": "run"}).value = "1"
    assert explorer.view == View(run=1, filters={"op": "write"})
    assert "1 call is shown, of 1 of 2 ranks" in document.select_one({"name": "found"}).text


def test_modes_of_marked_calls_are_those_of_the_ensemble(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    durations = rng.lognormal(-6, 0.2, 400)
    run = run_of(tmp_path / "modes", [[("pwrite", 0.02 * i, float(d), 10) for i, d in enumerate(durations)]])
    document, explorer = explore(Shown(run), "marked-time=0..4.0")
    button = document.select_one({"name": "modes"})
    button._trigger_event(ButtonClick(button))
    expected = ensembles.open(run.path).select(time="0..4.0").ensemble().modes()
    text = document.select_one({"name": "of_modes"}).text
    assert str(expected) in html.unescape(text)
    explorer.look(View(filters={"per_byte": "yes"}))
    button._trigger_event(ButtonClick(button))
    text = html.unescape(document.select_one({"name": "of_modes"}).text)
    assert "The calls all moved 10 B." in text
    expected = ensembles.open(run.path).select(per_byte=True).ensemble("MiB").modes()
    assert "per MiB" in str(expected)
    assert str(expected) in text
    assert "Durations of whole calls:" in document.select_one({"name": "found"}).text


def choose(document: Document, table: str, row: int) -> None:
    """Choose a row of a table, as a click does."""
    document.select_one({"name": table}).source.selected.indices = [row]


@pytest.fixture
def strided(tmp_path: Path) -> Shown:
    """A simulated run of MADbench whose reads are slow from the fourth on: one planted cause."""
    import subprocess

    command = [
        "ensio",
        "simulate",
        "madbench",
        "--set",
        "sizes=laptop",
        "--fs",
        "franklin",
        "--set",
        "fs_scale=1/64",
    ]
    subprocess.run([*command, "--seed", "1", "-o", str(tmp_path / "mad")], check=True, capture_output=True)
    return Shown(ensembles.open(tmp_path / "mad"))


def test_a_finding_marks_the_calls_that_its_filters_select(strided: Shown) -> None:
    document, explorer = explore(strided)
    table = document.select_one({"name": "findings"}).source.data
    assert list(table["id"]) == [finding.id for finding in ensembles.diagnose(strided.run).findings]
    choose(document, "findings", list(table["id"]).index("strided-readahead"))
    where = ensembles.diagnose(strided.run).findings[0].where
    reads = strided.run.select(op="read", layer=where.layer, file=list(where.files), phase=list(where.phases))
    low, high = where.times_s
    expected = reads[(reads.start >= round(low * 1e9)) & (reads.start < round(high * 1e9))]
    expected = expected[(expected.ordinal >= where.ordinals[0][0])]
    assert "finding 1: strided-readahead" in document.select_one({"name": "found"}).text
    assert len(expected) == len(strided.marked(explorer.view)) > 0
    names: dict = {}
    exec(explorer.view.python(strided.run.path), names)
    assert same(strided.marked(explorer.view), names["calls"])
    finding = ensembles.diagnose(strided.run).findings[0]
    said = html.unescape(document.select_one({"name": "found"}).text)
    assert f"Where: {where}. Advice: {finding.advice}." in said
    # The row stays chosen, until something else is marked.
    assert document.select_one({"name": "findings"}).source.selected.indices == [0]
    choose(document, "phases", 1)
    assert document.select_one({"name": "findings"}).source.selected.indices == []


def test_a_mark_says_how_many_of_its_calls_are_the_findings(strided: Shown) -> None:
    finding = ensembles.diagnose(strided.run).findings[0]
    document, explorer = explore(strided)
    text = document.select_one({"name": "found"})
    choose(document, "findings", 0)
    calls = len(strided.marked(explorer.view))
    assert "of the finding" not in text.text  # which does not count its calls
    # The same finding with fewer calls than its filters take.
    fewer = replace(finding, evidence={**finding.evidence, "calls": calls - 1})
    diagnosis = replace(strided.causes.diagnosis, findings=[fewer])
    strided.__dict__["causes"] = replace(strided.causes, diagnosis=diagnosis)
    document, explorer = explore(strided)
    text = document.select_one({"name": "found"})
    choose(document, "findings", 0)
    assert f"{calls - 1:,} of these {calls:,} calls are those of the finding: the other is of" in text.text
    choose(document, "phases", 1)
    assert "of the finding" not in text.text


def test_a_phase_and_a_call_index_mark_their_calls(strided: Shown) -> None:
    document, explorer = explore(strided)
    choose(document, "phases", 4)
    assert same(strided.marked(explorer.view), strided.run.select(phase=5))
    choose(document, "ordinals", 2)
    assert same(strided.marked(explorer.view), strided.run.select(op="read", ordinal=3))
    assert View.from_query(dict(parse_qsl(explorer.view.query()))) == explorer.view


def test_marks_outside_of_the_filters_are_refused(shown: Shown) -> None:
    document, explorer = explore(shown, "op=read")
    explorer.look(explorer.view.marking(marks={"op": "write"}))
    assert "leaves out all calls of the mark" in document.select_one({"name": "message"}).text
    assert not explorer.view.is_marked


def test_marks_and_filters_of_one_name_select_what_both_select(shown: Shown) -> None:
    view = View(filters={"rank": "0-1", "op": "read,write"}, marks={"rank": "1-2", "op": "write,read"})
    assert view.selecting() == {"rank": "1", "op": "read,write"}
    assert same(shown.marked(view), shown.run.select(rank=1, op=["read", "write"]))


def zoom(document: Document, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Report ranges of the axes, as the page does after a zoom."""
    document.select_one({"name": "explorer_trace_window"}).data = {"x": list(x), "y": [y[1], y[0]]}


def calls_drawn(document: Document) -> dict:
    return document.select_one({"name": "single_calls"}).data_source.data


def test_a_window_with_few_calls_has_single_calls(tmp_path: Path) -> None:
    calls = [("pwrite", 0.001 * i, 0.0005, 1000 + i) for i in range(900)]
    shown = Shown(run_of(tmp_path / "many", [calls] * 4))
    document, explorer = explore(shown)
    assert len(calls_drawn(document)["left"]) == 0
    zoom(document, (0.1, 0.12), (0.6, 1.4))
    assert explorer.view.zoom_s == (0.1, 0.12)
    drawn = calls_drawn(document)
    # Those of the window, and half of its size around it, of ranks 0 to 2.
    assert len(drawn["left"]) == 40 * 3
    middle = [place for place, left in enumerate(drawn["left"]) if left == 0.11]
    assert {drawn["task"][place] for place in middle} == {"rank 0", "rank 1", "rank 2"}
    place = middle[0]
    assert (drawn["right"][place], drawn["size"][place]) == (0.1105, "1.08 KiB (1,110 B)")
    assert (drawn["call"][place], drawn["file"][place]) == ("pwrite", "/scratch/data.out")
    # Calls that are wide enough have borders, which separate those that follow each other without a gap.
    assert set(drawn["colour"]) == {COLOURS["write"]}
    assert set(drawn["edge"]) == {darker(COLOURS["write"])}
    zoom(document, (0.2, 0.6), (0.6, 1.4))
    assert set(calls_drawn(document)["edge"]) == {COLOURS["write"]}  # half a millisecond is less than a pixel
    zoom(document, (0.1, 0.12), (0.6, 1.4))
    assert not any(
        each.visible
        for each in document.select_one({"name": "explorer_trace"}).renderers
        if "image" in each.data_source.data
    )
    again, _ = explore(shown, explorer.view.query())
    assert calls_drawn(again)["left"].tolist() == drawn["left"].tolist()
    times = again.select_one({"name": "explorer_trace"}).x_range
    assert (times.start, times.end) == (0.1, 0.12)


def test_the_image_of_a_window_is_the_time_spent_in_it(tmp_path: Path) -> None:
    from ensembles.viz.common.single_calls import Window

    rng = np.random.default_rng(3)
    tasks = [
        [
            ("pwrite", i * 0.01 + rng.uniform(0, 0.004), float(rng.uniform(0.0001, 0.006)), 1)
            for i in range(90)
        ]
        for _ in range(7)
    ]
    shown = Shown(run_of(tmp_path / "some", tasks))
    window = Window(123_456_789, 654_321_012, 2, 5)
    events = shown.events
    mine = (events.rank >= 2) & (events.rank <= 5)
    part = np.minimum(events.end, window.high_ns) - np.maximum(events.start, window.low_ns)
    raster, first = shown.calls(View()).window(window).drawn
    assert first == 2
    assert raster.time_ns.sum() == part[mine & (part > 0)].sum()
    for rank in range(2, 6):
        of_rank = part[(events.rank == rank) & (part > 0)].sum()
        assert raster.time_ns[:, rank - 2].sum() == of_rank


def test_the_slowest_call_is_zoomed_to(shown: Shown) -> None:
    document, explorer = explore(shown)
    choose(document, "slowest", 0)
    assert explorer.view.zoom_s == (0.0, 1.0)
    assert explorer.view.zoom_ranks == (-0.5, 2.5)
    assert len(calls_drawn(document)["left"]) == len(shown.events)


def test_a_rectangle_of_the_access_map_marks_its_calls(tmp_path: Path, capsys) -> None:
    import subprocess

    command = ["ensio", "simulate", "ior", "--tasks", "4", "--fs", "franklin", "--seed", "1"]
    subprocess.run([*command, "-o", str(tmp_path / "ior")], check=True, capture_output=True)
    shown = Shown(ensembles.open(tmp_path / "ior"))
    document, explorer = explore(shown)
    offsets = document.select_one({"name": "explorer_offsets"})
    half = int(shown.events.offset.max()) // 2
    offsets._trigger_event(SelectionGeometry(offsets, geometry(0.0, 1e4, 0, half), final=True))
    events = shown.events
    expected = (events.offset >= 0) & (events.offset < half)
    assert 0 < int(expected.sum()) == len(shown.marked(explorer.view)) < len(events)
    names: dict = {}
    exec(explorer.view.python(shown.run.path), names)
    assert same(shown.marked(explorer.view), names["calls"])
    words = explorer.view.command(shown.run.path).split()
    assert any(word.startswith("offset=") for word in words)
    assert main([*words[1:], "--format", "jsonl"]) == 0
    assert capsys.readouterr().out.count("\n") == int(expected.sum())
    both = View(filters={"offset": f"{half // 2}.."}, offsets=(0, half))
    assert both.selecting() == {"offset": f"{half // 2}..{half}"}
    exec(both.python(shown.run.path), names)
    assert same(shown.marked(both), names["calls"])
    assert 0 < len(names["calls"]) < int(expected.sum())
    assert View.from_query(dict(parse_qsl(explorer.view.query()))) == explorer.view


def test_two_runs_share_the_time_axis_and_the_marks(shown: Shown, tmp_path: Path) -> None:
    later = [[("pwrite", 2.0, 0.5, 1 << 20)], [("pread", 0.5, 0.55, 1 << 19)]]
    other = Shown(run_of(tmp_path / "other", later, lasted_s=3.0))
    document = Document()
    explorer = add_explorer(document, [shown, other], {})
    assert explorer.view.beside == 1
    one, two = (document.select_one({"name": f"explorer_trace{more}"}) for more in ("", "_beside"))
    assert one.x_range is two.x_range
    assert one.x_range.end >= 2.5
    histogram = document.select_one({"name": "explorer_histogram"})
    histogram._trigger_event(SelectionGeometry(histogram, geometry(0.45, 0.9, 1, 10), final=True))
    found = document.select_one({"name": "found"}).text
    assert f"2 calls are marked of {shown.run.path}" in found
    assert f"2 calls are marked of {other.run.path}" in found
    restored = add_explorer(Document(), [shown, other], dict(parse_qsl(explorer.view.query())))
    assert restored.view == explorer.view
    # Findings are those of the run that takes longer, or of the one that the reader chooses.
    choice = document.select_one({"name": "causes"})
    doubts, phases = (document.select_one({"name": name}) for name in ("reasons", "phases"))
    assert choice.visible
    assert choice.value == "1"
    assert f"are those of {other.run.path}." in doubts.text
    assert phases.source.data["time_s"] == [each.time_s for each in other.causes.structure.phases]
    phases.source.selected.indices = [0]
    name = name_of(other)
    assert explorer.view.what == f"phase 1 of {name}"
    assert f"Marked: phase 1 of {name}." in document.select_one({"name": "found"}).text
    choice.value = "0"
    assert not explorer.view.is_marked
    assert f"are those of {shown.run.path}." in doubts.text
    assert phases.source.data["time_s"] == [each.time_s for each in shown.causes.structure.phases]
    restored = add_explorer(Document(), [shown, other], dict(parse_qsl(explorer.view.query())))
    assert (restored.view.causes, restored._examined, restored._whose.value) == (0, shown, "0")
    headings = [each.text for each in document.select({"type": Div}) if "<strong>" in each.text]
    assert sum(f" of {html.escape(name_of(shown))}" in each for each in headings) == 2
    document.select_one({"name": "beside"}).value = "-"
    assert not choice.visible
    document.select_one({"name": "beside"}).value = "1"
    assert (choice.visible, choice.value) == (True, "0")
    button = document.select_one({"name": "compare"})
    button._trigger_event(ButtonClick(button))
    from ensembles.answers.compare import answer_comparisons
    from ensembles.comparison.compare import compare_runs

    expected = str(answer_comparisons(compare_runs([[shown.run], [other.run]])))
    assert html.escape(expected) in document.select_one({"name": "of_modes"}).text


def test_the_first_pictures_come_first_and_all_the_others_when_they_are_drawn(shown: Shown) -> None:
    document, whole = Document(), explore(shown, "op=write")[1]
    explorer = add_explorer(document, [shown], {}, in_stages=True)
    names = [fig.name for fig in explorer._pictures.children]
    assert names == ["explorer_trace"]
    assert document.select_one({"name": "explorer_rates"}) is None
    assert document.select_one({"name": "explorer_histogram"}) is None
    assert document.select_one({"name": "slowest"}) is None
    explorer.look(View(filters={"op": "write"}))  # draws other pictures, and still the first only
    assert [fig.name for fig in explorer._pictures.children] == names
    document.get_model_by_name("painted").data = {"views": ["1"]}
    for name in ("explorer_rates", "explorer_histogram", "slowest", "by_rank", "findings"):
        assert document.select_one({"name": name}) is not None
    assert len(explorer.layout.children) == len(whole.layout.children)
    assert len(explorer._pictures.children) == len(whole._pictures.children)
    document.get_model_by_name("painted").data = {"views": ["2"]}
    assert len(explorer.layout.children) == len(whole.layout.children)


def test_marked_calls_inside_others_have_their_time_and_bytes(tmp_path: Path) -> None:
    """Rank 0 writes only inside calls of MPI-IO; rank 1 has calls of 0.5 and 0.0625 s outside of them."""
    run = ensembles.open(traced_log().write(tmp_path / "a.darshan"))
    chosen = run.select(layer="posix")
    assert chosen.depth[chosen.rank == 0].all()
    sums = RankSums(2)
    sums.add(chosen)
    assert dict(zip(*(sums.table()[name].tolist() for name in ("rank", "slowest_s")), strict=True)) == {
        1: 0.5,
        0: 0,
    }
    filtered = Shown(run).calls(View(filters={"layer": "posix"}))
    marked = Shown(run).marked_calls(View(ranks=(0, 1), filters={"layer": "posix"}, durations_s=(0.0, 9.0)))
    assert marked is not None
    for calls in (filtered, marked):
        table = calls.by_rank()
        assert sorted(table["rank"].tolist()) == [0, 1]
        for rank, time_s, slowest_s in zip(table["rank"], table["time_s"], table["slowest_s"], strict=True):
            mine = chosen.duration[chosen.rank == rank] * 1e-9
            assert (time_s, slowest_s) == (pytest.approx(mine.sum()), pytest.approx(mine.max()))
        moved = np.array([call.op in ("read", "write") for call in chosen.calls])[chosen.call]
        assert calls.curve().moved_bytes.sum() == pytest.approx(chosen.moved[moved].sum())
    # Commands, and passes over large runs, agree.
    totals = {rank.rank: rank for rank in run.by_rank(layer="posix")}
    assert totals[0].bytes_written == chosen.moved[(chosen.rank == 0) & moved].sum() > 0
