"""What the explorer shows of a window: offsets at their time, and what is in view beside what is selected."""

from __future__ import annotations

import html
import json
import shlex
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.events import ButtonClick
from bokeh.models.widgets import Div
from made_runs import run_of

import ensembles
from ensembles.cli.main import main
from ensembles.model.units import seconds_text, share_text
from ensembles.viz.common.single_calls import call_columns
from ensembles.viz.explorer.page import Explorer, add_explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.tables import FINDINGS, Table
from ensembles.viz.explorer.view import Chosen, View, end_of

MIB = 1 << 20
RUNS = Path(__file__).resolve().parents[2] / "corpus" / "runs"
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.01, 8 * MIB, 0), ("pwrite", 0.6058, 0.01, MIB, 16 * MIB)],
    [("open", 0.0, 0.02, 0), ("pwrite", 0.58, 0.02, MIB, 8 * MIB), ("pwrite", 0.6, 0.3, 4 * MIB, 9 * MIB)],
]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(run_of(tmp_path / "run", TASKS))


def explore(shown: Shown, query: str = "") -> tuple[Document, Explorer]:
    document = Document()
    return document, add_explorer(document, [shown], dict(parse_qsl(query)))


def times_of(source) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells of time of an image of offsets, and which of them have bytes."""
    data = source.data
    has_bytes = data["image"][0].any(axis=(0, 2))
    return data["x"][0] + data["dw"][0] * np.arange(len(has_bytes) + 1) / len(has_bytes), has_bytes


def test_offsets_of_a_window_are_drawn_at_their_time(shown: Shown) -> None:
    _, explorer = explore(shown, "shown-time=0.585..0.6057")
    offsets = explorer._panels[0].offsets
    edges, has_bytes = times_of(offsets._all)
    assert (edges[0], edges[-1]) == pytest.approx((0.585, 0.6057))
    # Those of rank 1, from 8 to 13 MiB, and nothing of the calls at 0.25 and 0.6058 s.
    assert has_bytes.all()
    rows = np.flatnonzero(offsets._all.data["image"][0].any(axis=(1, 2)))
    assert offsets._found.offset_edges[[rows[0], rows[-1] + 1]].tolist() == [8 * MIB, 13 * MIB]
    assert int(offsets._drawn.by_time("write").sum()) == pytest.approx(
        MIB * 0.015 / 0.02 + 4 * MIB * 0.0057 / 0.3, rel=1e-4
    )
    explorer.look(View(zoom_s=(0.3, 0.5)))
    assert not times_of(offsets._all)[1].any()
    explorer.look(View())
    assert offsets._drawn is offsets._found


def test_marked_offsets_of_a_window_are_a_part_of_all(shown: Shown) -> None:
    _, explorer = explore(shown, "shown-time=0.585..0.62&marked-ranks=0..0")
    offsets = explorer._panels[0].offsets
    edges, has_bytes = times_of(offsets._marked)
    assert edges[:-1][has_bytes].min() == pytest.approx(0.6058, abs=1e-4)
    assert edges[1:][has_bytes].max() == pytest.approx(0.6158, abs=1e-4)
    for name in ("x", "y", "dw", "dh"):
        assert offsets._marked.data[name] == offsets._all.data[name]
    marked, whole = (source.data["image"][0] for source in (offsets._marked, offsets._all))
    assert marked.shape == whole.shape
    assert (marked <= whole).all()


def test_marked_offsets_have_the_cells_of_all(shown: Shown) -> None:
    """Finer cells would share a pixel of the page, which draws one of them only."""
    _, explorer = explore(shown, "marked-ranks=0..0&marked-time=0.6..0.7")
    offsets = explorer._panels[0].offsets
    for name in ("y", "dh"):
        assert offsets._marked.data[name] == offsets._all.data[name]
    assert offsets._marked.data["image"][0].shape == offsets._all.data["image"][0].shape


def test_offsets_of_a_window_of_a_large_run_are_those_of_its_calls(tmp_path: Path) -> None:
    shown = Shown(run_of(tmp_path / "run", TASKS))
    trace = tmp_path / "trace.h5"
    subprocess.run(["ensio", "collect", shown.run.path, "-o", str(trace)], check=True, capture_output=True)
    summed = Shown(ensembles.open(trace), most_events=0)
    for query in ("", "&marked-ranks=0..0"):
        held, large = (
            explore(each, f"shown-time=0.585..0.62{query}")[1]._panels[0].offsets for each in (shown, summed)
        )
        for source in ("_all", "_marked"):
            one, other = (getattr(each, source).data for each in (held, large))
            assert len(one["image"]) == len(other["image"])
            for image, same in zip(one["image"], other["image"], strict=True):
                np.testing.assert_array_equal(image, same)
            assert one["x"] == other["x"]


def text_of(document: Document, name: str) -> str:
    return html.unescape(document.select_one({"name": name}).text)


def test_the_median_is_that_of_numpy_and_of_ensembles(tmp_path: Path) -> None:
    durations = [57.8e-6, 78.2e-6, 130e-6, 578e-6]
    for count in (4, 3):
        some = Shown(
            run_of(tmp_path / f"{count}", [[("pwrite", 0.1, each, MIB)] for each in durations[:count]])
        )
        expected = float(np.median(np.round(np.multiply(durations[:count], 1e9))))
        assert some.calls(View()).durations_ns[1] == expected
        assert some.run.select().ensemble().quantiles(0.5)[0.5].value == pytest.approx(expected * 1e-9)
        table = explore(some)[0].select_one({"name": "ordinals"}).source.data
        assert table["median_s"] == pytest.approx([expected * 1e-9])
        found = text_of(explore(some, "marked-op=write&marked-ordinal=1")[0], "found")
        assert f"median {seconds_text(expected * 1e-9)}." in found


def test_what_is_in_view_is_told_beside_what_is_selected(shown: Shown) -> None:
    document, explorer = explore(shown)
    assert "6 calls are shown, of 2 of 2 ranks" in text_of(document, "found")
    assert "In view" not in text_of(document, "found")
    explorer.look(View(zoom_s=(0.585, 0.6057)))
    found = text_of(document, "found")
    assert "6 calls are selected, of 2 of 2 ranks, from 0 ns to 900 ms" in found
    # The second call of rank 1 is in progress at 0.585 s; rank 0 has none until 0.6058 s.
    assert (
        "In view: 0.5850 to 0.6057 s, with 2 of these calls. The command and the Python below select all 6."
        in found
    )
    explorer.look(View(zoom_s=(0.2, 0.7), zoom_ranks=(-0.5, 0.5), ranks=(0, 0)))
    found = text_of(document, "found")
    assert "3 calls are marked, of 1 of 2 ranks" in found
    assert "In view: 0.200 to 0.700 s, rank 0, with 2 of these calls." in found
    explorer.look(View())
    assert "6 calls are shown" in text_of(document, "found")


def test_a_mark_says_how_much_time_it_is_and_rates_what_a_value_is_the_mean_of(
    shown: Shown, waiting: Shown
) -> None:
    document, explorer = explore(shown)
    assert "They take 370 ms." in text_of(document, "found")
    explorer.look(View(ranks=(1, 1), durations_s=(0.15, 1.0)))
    assert "They take 300 ms, 81 % of the time in I/O calls." in text_of(document, "found")
    events = waiting.run.select()
    is_io = np.array([call.layer != "mpisync" for call in events.calls])[events.call]
    io_s = seconds_text(events.duration[is_io & (events.depth == 0)].sum() * 1e-9)
    said = text_of(explore(waiting)[0], "found")
    assert f"Those that are I/O take {io_s}. {(~is_io).sum():,} calls wait for other tasks." in said
    fig = explorer._panels[0].rates.figures["write"]
    width_s = np.diff(explorer._panels[0].rates.source.data["left"])[0]
    assert " ".join(fig.title.text.split()).endswith(f", mean of each {seconds_text(width_s)}")


def test_offsets_are_those_of_a_file_in_which_marked_calls_are(tmp_path: Path) -> None:
    tasks = [
        [("pwrite", 0.0, 0.1, MIB, 0, 1), ("pwrite", 0.2, 0.1, 1024, 0, 2), ("fsync", 0.4, 0.1, 0, -1, 2)]
    ]
    _, explorer = explore(Shown(run_of(tmp_path / "run", tasks, path=("/a", "/b"))))

    def title() -> str:
        (fig,) = (each for each in explorer._pictures.children if each.name == "explorer_offsets")
        assert fig is explorer._panels[0].offsets.figure
        return " ".join(fig.title.text.split())

    assert title() == "Offsets in /a: drag to mark calls"
    explorer.look(View(time_s=(0.15, 0.35)))
    assert title() == "Offsets in /b: drag to mark calls"
    explorer.look(View(marks={"op": "sync"}, what="syncs"))
    assert title() == "Offsets in /b: no marked call moves bytes here"
    explorer.look(View(zoom_s=(0.15, 0.35), file="/a"))
    assert title() == "Offsets in /a: no bytes move in this time"
    explorer.look(View())
    assert title() == "Offsets in /a: drag to mark calls"
    # A reader chooses the file, or a call of it.
    choice = explorer._panels[0].file_choice
    assert [each[0] for each in choice.options] == ["", "/a", "/b"]
    choice.value = "/b"
    assert title() == "Offsets in /b: drag to mark calls"
    assert View.from_query(dict(parse_qsl(explorer.view.query()))) == View(file="/b")
    assert choice in explorer._pictures.children
    explorer._slowest.source.selected.indices = [0]
    assert explorer.view.chosen == Chosen(0, 0.0, 0.1, "/a")
    assert (title(), choice.value) == ("Offsets in /a: drag to mark calls", "")
    outline = {name: column[0] for name, column in explorer._panels[0].diagram._chosen.data.items()}
    assert (outline["left"], outline["right"]) == (0.0, 0.1)
    assert outline["bottom"] == pytest.approx(-0.43)
    assert outline["top"] == pytest.approx(0.43)
    explorer._slowest.source.selected.indices = [1]
    assert title() == "Offsets in /b: drag to mark calls"
    found = explorer.layout.select_one({"name": "found"})
    assert "Chosen and outlined: the call of rank 0 at 0.2 s, which takes 100 ms, on /b." in found.text
    assert View.from_query(dict(parse_qsl(explorer.view.query()))) == explorer.view
    explorer.look(View())
    assert explorer._slowest.source.selected.indices == []
    assert len(explorer._panels[0].diagram._chosen.data["left"]) == 0


def test_the_times_of_a_run_that_goes_on_get_another_unit(tmp_path: Path) -> None:
    calls = [("pwrite", 0.0, 0.1, MIB, 0), ("pwrite", 0.3, 0.1, MIB, MIB)]
    followed = Shown(run_of(tmp_path / "so far", [calls]))
    _, explorer = explore(followed)
    labels = {fig.xaxis[0].axis_label for fig in explorer._panels[0].figures[:-1]}
    assert labels == {"time since the start of the run (ms)"}
    now = Shown(run_of(tmp_path / "now", [[*calls, ("pwrite", 30.0, 0.1, MIB, 2 * MIB)]], lasted_s=31.0))
    followed.run, followed.events, followed.version = now.run, now.events, 1
    followed._begin()
    figures = explorer._panels[0].figures
    explorer.renew()
    assert explorer._panels[0].figures == figures  # they may be in use
    labels = {fig.xaxis[0].axis_label for fig in figures[:-1]}
    assert labels == {"time since the start of the run (s)"}
    # The page may report the window of before, which was all of the run then.
    _zoom = {"x": [-0.004, 0.404], "y": [0.5, -0.5]}
    diagram = explorer._panels[0].diagram
    assert diagram.window_of(_zoom)[0] is None
    assert diagram.window_of(_zoom | {"x": [0.0, 0.404]})[0] == (0.0, 0.404)


def test_calls_of_several_threads_name_theirs(tmp_path: Path) -> None:
    calls = [("pwrite", 0.1 * each, 0.05, 1024) for each in range(4)]
    document, explorer = explore(Shown(run_of(tmp_path / "threads", [calls], threads=2)))
    assert [each.field for each in document.select_one({"name": "slowest"}).columns][:2] == ["rank", "thread"]
    title = document.select_one({"name": "explorer_trace"}).title
    assert "each thread has a lane" in title.text.replace("\n", " ")
    explorer.look(View(zoom_s=(0.0, 0.05)))  # one call, of one thread
    assert "lane" not in title.text
    drawn = explorer._panels[0].diagram._calls.data["task"]
    assert drawn == ["rank 0, thread 0"]
    slowest = document.select_one({"name": "slowest"}).source.data
    assert np.asarray(slowest["thread"]).tolist() == [0, 1, 0, 1]
    document, _ = explore(Shown(run_of(tmp_path / "one", [calls])))
    assert "thread" not in [each.field for each in document.select_one({"name": "slowest"}).columns]


def test_a_row_is_chosen_only_while_it_is_the_same(shown: Shown) -> None:
    document, explorer = explore(shown)
    slowest = document.select_one({"name": "slowest"}).source
    slowest.selected.indices = [0]
    explorer.look(replace(explorer.view, zoom_s=None, zoom_ranks=None))
    assert slowest.selected.indices == [0]
    explorer.look(View(ranks=(1, 1)))
    assert slowest.selected.indices == []


def test_filters_that_match_nothing_say_what_the_run_has(shown: Shown) -> None:
    document, _ = explore(shown, "op=write&rank=9")
    assert "No call is shown: no call of" in text_of(document, "found")
    assert "the run has calls of ranks 0-1" in text_of(document, "found")
    # Also above the pictures, which are empty.
    assert "the run has calls of ranks 0-1" in text_of(document, "message")


@pytest.mark.parametrize("filters", [{}, {"op": "write"}, {"rank": "1"}, {"phase": "1", "op": "open"}])
def test_phases_and_call_indices_are_those_of_the_commands_with_the_filters(
    shown: Shown, filters: dict[str, str], capsys
) -> None:
    document, explorer = explore(shown)
    explorer.look(View(filters=filters))
    options = [word for name, text in filters.items() for word in (f"--{name}", text)]

    def rows(command: str) -> list[dict]:
        assert main([command, shown.run.path, *options, "--json"]) == 0
        return json.loads(capsys.readouterr().out)[command]

    phases = document.select_one({"name": "phases"}).source.data
    for field, key in (("calls", "calls"), ("start_s", "start_s"), ("time_s", "time_s")):
        assert phases[field] == [phase[key] for phase in rows("phases")]
    indices = document.select_one({"name": "ordinals"}).source.data
    assert indices["calls"] == [row["n"] for row in rows("ordinals")]
    assert indices["median_s"] == [row["median_s"] for row in rows("ordinals")]
    assert ("of the calls that the filters select" in explorer._causes_heading.text) == bool(filters)
    # A row marks its calls among those of the filters.
    document.select_one({"name": "ordinals"}).source.selected.indices = [0]
    assert len(shown.marked(explorer.view)) == indices["calls"][0]


def test_without_a_call_there_are_no_phases(shown: Shown) -> None:
    document, explorer = explore(shown)
    explorer.look(View(filters={"op": "open", "time": "5.."}))
    assert document.select_one({"name": "phases"}).source.data["calls"] == []
    assert document.select_one({"name": "ordinals"}).source.data["calls"] == []
    assert "The filters select no call of a phase." in text_of(document, "reasons")
    explorer.look(View())
    assert document.select_one({"name": "phases"}).source.data["calls"] == [2, 2, 2]


@pytest.fixture(scope="module")
def waiting(tmp_path_factory) -> Shown:
    """A simulated run with barriers, in which tasks wait for the last one."""
    folder = tmp_path_factory.mktemp("waiting") / "gcrm"
    command = [
        "ensio",
        "simulate",
        "gcrm",
        "--set",
        "sizes=laptop",
        "--fs",
        "franklin",
        "--set",
        "fs_scale=1/64",
    ]
    subprocess.run([*command, "--seed", "1", "-o", str(folder)], check=True, capture_output=True)
    return Shown(ensembles.open(folder))


def test_phases_have_idle_time_and_the_last_rank_as_the_command(waiting: Shown, capsys) -> None:
    assert main(["phases", waiting.run.path, "--json"]) == 0
    phases = json.loads(capsys.readouterr().out)["phases"]
    table = explore(waiting)[0].select_one({"name": "phases"}).source.data
    last = [
        "late start" if each["late_outside"] else (each["late_calls"] or each["last_call"])["call"]
        for each in phases
    ]
    ranks = [each["slowest_task"] for each in phases]
    assert table["last"] == [f"{rank} {call}" for rank, call in zip(ranks, last, strict=True)]
    all_here = [each["tasks"] == waiting.run.tasks for each in phases]
    idle = [seconds_text(each["lost_s"]) for each in phases]
    assert table["idle"] == [
        text if known else f"≥ {text}" for known, text in zip(all_here, idle, strict=True)
    ]
    shares = [share_text(each["lost_share"]) for each in phases]
    assert table["share"] == [text * known for known, text in zip(all_here, shares, strict=True)]


@pytest.mark.parametrize(
    "query", ["", "marked-ranks=2..5&marked-time=0.0..0.5", "op=write", "marked-phase=2"]
)
def test_modes_are_those_of_the_command_with_the_copied_filters(waiting: Shown, query: str, capsys) -> None:
    document, explorer = explore(waiting, query)
    of_marked = explorer._panels[0].of_marked
    calls = explorer.shown.run.calls
    button = document.select_one({"name": "modes"})
    button._trigger_event(ButtonClick(button))
    words = shlex.split(explorer.view.command(waiting.run.path))
    assert words[-2:] == ["--format", "csv"]
    assert main(["modes", *words[2:-2], "--json"]) == 0
    modes = json.loads(capsys.readouterr().out)
    waits = sum(calls[number].waits_for_tasks for number in waiting.marked(explorer.view).call.tolist())
    assert modes["n"] <= of_marked.count - waits
    text = text_of(document, "of_modes")
    assert f"{modes['n']:,} calls" in text
    for each in modes["modes"]:
        assert seconds_text(each["t_s"]) in text
    assert main(["tail", *words[2:-2], "--json"]) == 0  # of as many calls as tasks make them
    tail = json.loads(capsys.readouterr().out)
    assert f"lowest of {tail['tasks']} calls" in text or "Any call of a task" in text
    if tail["refused"]:
        assert tail["refused"] in " ".join(text.split())
    else:
        assert f"{seconds_text(tail['low_s'])} – {seconds_text(tail['high_s'])}" in text


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("regions", {"region": "work"}),
        ("regions", {"region": "inner"}),
        ("flights-ompio", {"site": "overlap+0x121a"}),
    ],
)
def test_filters_by_region_and_call_site_are_those_of_the_command(
    name: str, given: dict[str, str], tmp_path: Path
) -> None:
    with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path)
    shown = Shown(ensembles.open(tmp_path / name))
    chosen = shown.run.select(**given)
    assert 0 < len(chosen) < len(shown.run.events)
    document, explorer = explore(shown, urlencode(given))
    assert explorer._panels[0].of_marked.count == len(chosen)
    ((option, text),) = given.items()
    assert explorer.view.command("run") == (
        f"ensio events run --where {shlex.quote(f'{option}={text}')} --format csv"
    )
    assert f"{option}={text!r}" in explorer.view.python("run")
    assert document.select_one({"name": f"filter_{option}"}).value == text


def test_a_long_path_keeps_its_end() -> None:
    assert end_of("/a/short/path") == "/a/short/path"
    shown = end_of("/home/user/.venv/lib/python3.11/site-packages/darshan/examples/dxt.darshan")
    assert shown == "…/examples/dxt.darshan"
    assert end_of("x" * 40 + "/y") == "…/y"
    assert end_of("x" * 40) == "…" + "x" * 27


def test_linked_axes_of_time_have_the_same_ticks(shown: Shown) -> None:
    panel = explore(shown)[1]._panels[0]
    figures = (panel.diagram.figure, *panel.rates.figures.values(), panel.offsets.figure)
    assert len({fig.xaxis[0].ticker.id for fig in figures}) == 1
    assert all(fig.xgrid[0].ticker is None for fig in figures)  # those of the axis


def test_waiting_is_drawn_behind_the_calls_and_marked_bars_are_seen_through(waiting: Shown) -> None:
    durations = explore(waiting, "marked-time=0..1")[1]._panels[0].durations
    drawn = [each.name for each in durations.figure.renderers]
    assert drawn[:2] == ["all_wait", "marked_wait"]
    marked = [each for each in durations.figure.renderers if each.name.startswith("marked_")]
    assert all(0.5 < each.glyph.fill_alpha < 1 for each in marked)
    labels = [item.label.value.split(" (")[0] for item in durations.figure.legend[0].items]
    assert labels[-1] == "waiting in MPI"
    assert labels[0] == "write"


def test_zooming_to_marked_calls_without_a_mark_says_so(shown: Shown) -> None:
    document, explorer = explore(shown, "op=write")
    button = document.select_one({"name": "zoom"})
    button._trigger_event(ButtonClick(button))
    assert explorer.view.zoom_s is not None
    assert "No call is marked: the window has all calls that the filters select." in text_of(
        document, "of_modes"
    )


def test_borders_do_not_cover_calls_of_low_rows(tmp_path: Path) -> None:
    for tasks, bordered in ((20, True), (200, False)):
        run = run_of(tmp_path / f"{tasks}", [[("pwrite", 0.1, 0.5, 1)] for _ in range(tasks)])
        columns = call_columns(run.events)
        assert {edge != colour for edge, colour in zip(columns["edge"], columns["colour"], strict=True)} == {
            bordered
        }


def test_the_table_of_findings_is_as_high_as_its_rows() -> None:
    table = Table("findings", FINDINGS, several_lines=True)
    heights = []
    for rows in (0, 1, 2, 3, 9):
        table.fill({name: [""] * rows for name in table.source.data})
        table.fit(3)
        heights.append(table.widget.height)
    assert heights == [55, 55, 80, 105, 105]
    # Rows are as high as their texts are in a narrow page.
    for length, height in ((60, 38), (1_000, 68)):
        table.fill({name: [""] for name in table.source.data} | {"title": ["x" * length]})
        table.fit(3)
        assert (table.widget.row_height, table.widget.height) == (height, 30 + height)


def test_a_page_in_stages_says_that_more_follows(shown: Shown) -> None:
    document = Document()
    explorer = add_explorer(document, [shown], {}, in_stages=True)

    def says() -> bool:
        return any("tables follow" in each.text for each in document.select({"type": Div}))

    assert says()
    explorer.complete()
    assert not says()
