"""The report in headless Chromium, cut off from the network: it shows what it should, without an error."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bokeh.embed import file_html
from bokeh.resources import INLINE
from made_runs import run_of
from pages import unpacked
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.viz import histogram, write_report
from ensembles.viz.common.style import COLOURS, LABELS

if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    pytest.skip(
        "playwright or Pillow is not installed: the report is not tried in a browser", allow_module_level=True
    )

from browser import browser, chromium, wait_until_drawn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium() is None, reason="no Chromium on PATH: the report is not tried in a browser"
    ),
]

MIB = 1 << 20
WHITE = (255, 255, 255)


def rgb(colour: str) -> tuple[int, int, int]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@pytest.fixture
def open_report():
    with browser() as open_page:
        yield open_page


@pytest.fixture(scope="module")
def four_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Task 0 writes from 1 s to 2 s, task 1 reads from 3 s to 5 s, 2 syncs and 3 opens from 6 s to 7 s."""
    folder = tmp_path_factory.mktemp("four")
    tasks = [
        [("pwrite", 1.0, 1.0, 8 * MIB)],
        [("pread", 3.0, 2.0, 4 * MIB)],
        [("fsync", 6.0, 1.0, 0)],
        [("open", 6.0, 1.0, 0)],
    ]
    path = folder / "report.html"
    write_report(run_of(folder / "run", tasks, lasted_s=8.0), path)
    return path


@pytest.fixture(scope="module")
def seen(four_tasks: Path):
    """Its page, for tests that only look: to open one takes seconds."""
    with browser() as open_page:
        yield open_page(four_tasks)


@pytest.fixture(scope="module")
def many_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    synthetic_run(folder / "run", 3000, 12)
    path = folder / "report.html"
    write_report(en.open(folder / "run"), path)
    return path


def test_nothing_goes_wrong_and_nothing_is_fetched(open_report, four_tasks: Path) -> None:
    report = open_report(four_tasks)
    report.page.get_by_text("log–log").first.click()
    report.page.wait_for_timeout(300)
    assert report.problems == []


@pytest.mark.parametrize("width", [1000, 1280, 1600])
def test_page_fits_its_window(seen, width: int) -> None:
    before = seen.page.viewport_size
    seen.page.set_viewport_size({"width": width, "height": 900})
    wait_until_drawn(seen.page, lambda: seen.page.evaluate("document.documentElement.scrollWidth") <= width)
    seen.page.set_viewport_size(before)


@pytest.mark.parametrize(
    ("x_s", "task", "colour"),
    [(1.5, 0, "write"), (4.0, 1, "read"), (6.5, 2, "sync"), (6.5, 3, "metadata")],
)
def test_pixels_of_the_diagram_have_the_colour_of_the_call(seen, x_s: float, task: int, colour: str) -> None:
    wait_until_drawn(seen.page, lambda: seen.pixel("trace_diagram", x_s, task + 0.2) == rgb(COLOURS[colour]))
    assert seen.pixel("trace_diagram", 2.5, task + 0.2) == WHITE


def test_colour_of_a_pixel_is_the_mixture_of_what_it_covers(open_report, tmp_path: Path) -> None:
    # Writes for a quarter, reads for half of every 2 µs: far shorter than a pixel.
    calls = [
        call
        for i in range(4000)
        for call in (("write", 2e-6 * i, 5e-7, 1), ("read", 2e-6 * i + 5e-7, 1e-6, 1))
    ]
    path = tmp_path / "report.html"
    write_report(run_of(tmp_path / "run", [calls], lasted_s=0.01), path)
    report = open_report(path)
    write, read = rgb(COLOURS["write"]), rgb(COLOURS["read"])
    expected = [0.25 * 255 + 0.25 * w + 0.5 * r for w, r in zip(write, read, strict=True)]
    assert report.pixel("trace_diagram", 0.004, 0.2) == pytest.approx(expected, abs=8)
    # A pixel of 4.1 µs does not cover two whole turns.
    assert re.search(
        r"write: 2[3-7] % read: (4[7-9]|5[0-3]) %", report.hover_text("trace_diagram", 0.004, 0.2)
    )


def test_task_0_is_on_top(seen) -> None:
    assert seen.place("trace_diagram", 1.5, 0)[1] < seen.place("trace_diagram", 1.5, 3)[1]


def test_hover_boxes_tell_values_with_units(seen) -> None:
    diagram = seen.hover_text("trace_diagram", 1.5, 0)
    assert "rank 0" in diagram
    assert "write: 100 %" in diagram
    assert "read: 0 %" in diagram
    assert "1.5" in diagram
    inside = seen.hover_text("tasks_inside", 6.5, 1)
    assert "sync: 1 of 4 tasks (25 %)" in inside
    assert "write rate: 8.00 MiB/s" in seen.hover_text("rate_write", 1.5, 4)
    assert "read rate: 2.00 MiB/s" in seen.hover_text("rate_read", 4.0, 1)
    durations = seen.hover_text("histogram_linear", 1.999, 0.1)
    assert "call: pread" in durations
    assert " s" in durations


def test_pictures_have_legends_for_what_is_there_and_share_their_time_axis(seen) -> None:
    code = "model.above.flatMap((part) => part.items ?? []).map((item) => item.label.value)"
    assert seen.property_of("trace_diagram", code) == [
        LABELS[name] for name in ("write", "read", "metadata", "sync")
    ]
    (writes,), (reads,) = (seen.property_of(name, code) for name in ("rate_write", "rate_read"))
    # The average is over whole cells of time: 1 s is 239 of them, and parts of two more.
    assert re.fullmatch(r"write: 8\.00 MiB, (8\.00|7\.9\d) MiB/s while data moved", writes)
    assert re.fullmatch(r"read: 4\.00 MiB, (2\.00|1\.99) MiB/s while data moved", reads)
    ranges = {
        seen.property_of(name, "model.x_range.id")
        for name in ("trace_diagram", "tasks_inside", "rate_write", "rate_read")
    }
    assert len(ranges) == 1


def test_rates_have_an_axis_for_each_direction_and_a_zoom_scales_it(open_report, four_tasks: Path) -> None:
    report = open_report(four_tasks)
    assert report.property_of("rate_write", "model.y_range.end") == pytest.approx(8, rel=0.1)
    assert report.property_of("rate_read", "model.y_range.end") == pytest.approx(2, rel=0.1)
    # A time without writes: the axis of writes is no longer that of the whole run.
    report.property_of("rate_write", "(model.x_range.setv({start: 3.2, end: 4.8}), 0)")
    report.wait_until("rate_write", "model.y_range.end < 2")
    assert report.property_of("rate_read", "model.y_range.end") == pytest.approx(2, rel=0.1)
    assert report.problems == []


def test_legends_answer_to_the_keyboard(open_report, four_tasks: Path) -> None:
    report = open_report(four_tasks)
    shown = "model.renderers.filter((renderer) => renderer.visible).length"
    whole = report.property_of("rate_write", shown)
    key = report.page.get_by_role("button", name=re.compile("^write: 8.00 MiB.*: hide$"))
    key.press("Enter")
    assert report.property_of("rate_write", shown) < whole
    report.page.get_by_role("button", name=re.compile("^write: 8.00 MiB.*: show$")).press(" ")
    assert report.property_of("rate_write", shown) == whole
    assert report.problems == []


def test_time_axes_of_all_pictures_are_aligned(seen) -> None:
    for x_s in (0.0, 7.0):
        lefts = [seen.position(name, x_s, 0)[0] for name in ("trace_diagram", "tasks_inside", "rate_write")]
        assert max(lefts) - min(lefts) < 1.5


def test_nothing_of_an_earlier_painting_stays_at_the_edge_of_a_canvas(open_report, four_tasks: Path) -> None:
    edge = """async (colour) => {
        const [view] = Bokeh.index.query((each) => each.model.name === "trace_diagram");
        const {ctx} = view.canvas_view.primary;
        const column = () => [...ctx.getImageData(0, 0, 1, ctx.canvas.height).data].join();
        ctx.fillStyle = colour;
        ctx.fillRect(0, 0, 1, ctx.canvas.height);
        const painted = column();
        view.request_paint();
        while (column() === painted) await new Promise(requestAnimationFrame);
        return column();
    }"""
    page = open_report(four_tasks).page
    assert page.evaluate(edge, "#000000") == page.evaluate(edge, "#ff0000")


def test_box_and_wheel_zoom_the_diagram(open_report, four_tasks: Path) -> None:
    report = open_report(four_tasks)
    start = "model.x_range.start"
    span = f"model.x_range.end - {start}"
    whole = report.property_of("trace_diagram", span)
    left, top = report.position("trace_diagram", 1.0, 0.5)
    right = report.position("trace_diagram", 2.0, 0.5)[0]
    report.page.mouse.move(left, top)
    report.page.mouse.down()
    report.page.wait_for_timeout(400)  # Bokeh would take it for another gesture
    report.page.mouse.move(right, top + 30, steps=5)
    report.page.mouse.up()
    zoomed = report.property_of("trace_diagram", span)
    assert zoomed == pytest.approx(1.0, rel=0.1)
    assert report.property_of("rate_read", span) == zoomed < whole
    rows = "[model.y_range.start, model.y_range.end]"
    some = report.property_of("trace_diagram", rows)
    report.page.keyboard.down("Control")
    report.page.mouse.wheel(0, 300)
    report.page.keyboard.up("Control")
    report.wait_until("trace_diagram", f"{span} > {zoomed}")
    # Of few ranks, the wheel zooms the time only; beside their axis, it zooms them.
    assert report.property_of("trace_diagram", rows) == some
    report.page.mouse.move(
        *report.position("trace_diagram", report.property_of("trace_diagram", start) - 0.02, 1)
    )
    report.page.keyboard.down("Control")
    report.page.mouse.wheel(0, 300)
    report.page.keyboard.up("Control")
    report.wait_until("trace_diagram", f"model.y_range.start !== {some[0]}")
    assert report.problems == []


def test_a_zoom_shows_single_calls_with_their_boxes(open_report, four_tasks: Path, many_tasks: Path) -> None:
    report = open_report(four_tasks)
    drawn = "model.renderers.find((r) => r.name == 'zoomed_calls').data_source.data"
    shown = f"[{drawn}.left, {drawn}.right, model.renderers[0].visible, model.title.text]"
    frame = "Bokeh.index.find_one(model).frame.bbox.height"
    high = report.property_of("trace_diagram", frame)
    whole = report.property_of("trace_diagram", shown)
    assert whole[:3] == [[], [], True]
    report.property_of("trace_diagram", "model.x_range.setv({start: 1.25, end: 3.5}) && 0")
    left, right, image, title = report.property_of("trace_diagram", shown)
    assert (left, right, image) == ([1.0, 3.0], [2.0, 5.0], False)
    words = "Trace diagram of 4 tasks: 2 calls in view, each a rectangle; blank: no recorded call"
    assert title.replace("\n", " ") == words
    report.wait_until("trace_diagram", f"Math.abs({frame} - {high}) < 4")  # the title has room for its lines
    # Rows of which a part is in view have calls too.
    report.property_of("trace_diagram", "model.y_range.setv({start: 1.3, end: 0.8}) && 0")
    assert report.property_of("trace_diagram", f"{drawn}.left.length") == 1
    report.property_of("trace_diagram", "model.y_range.reset() ?? 0")
    assert report.hover_text("trace_diagram", 3.25, 1) == (
        "call: pread task: rank 1 file: /scratch/data.out offset: none size: 4.00 MiB (4,194,304 B) "
        "start: 3.000000000 s duration: 2.00 s"
    )
    report.property_of("trace_diagram", "model.reset.emit() ?? 0")
    report.property_of("trace_diagram", "model.x_range.reset() ?? 0")
    assert report.property_of("trace_diagram", shown) == whole
    report = open_report(many_tasks)  # 36,000 calls: the longest are in the page
    report.property_of("trace_diagram", "model.y_range.setv({start: 1600, end: 1400}) && 0")
    left, right, image, title = report.property_of("trace_diagram", shown)
    assert 0 < len(left) <= 2000
    assert image
    assert f"rectangles: {len(left)} of the 8,000 longest calls" in title.replace("\n", " ")
    assert report.problems == []


def test_many_tasks_share_rows_and_zooming_in_shows_the_finer_image(open_report, many_tasks: Path) -> None:
    report = open_report(many_tasks)
    # 3,000 tasks are 3 in each of 1,000 rows; the coarse image joins two rows.
    start = report.property_of("trace_diagram", "model.renderers[0].data_source.data.x[0]")
    assert "ranks 1500–1505" in report.hover_text("trace_diagram", start + 1e-4, 1503)
    of_images = "model.renderers.filter((r) => r.data_source.data.image)"
    rows = f"{of_images}.map((r) => r.data_source.data.image[0].shape[0])"
    assert report.property_of("trace_diagram", rows) == [
        500
    ]  # the finer image is not drawn before it is needed
    report.property_of("trace_diagram", "(model.y_range.start = 1600, model.y_range.end = 1400, 0)")
    assert report.property_of("trace_diagram", rows) == [1000, 500]
    assert report.property_of("trace_diagram", f"{of_images}.map((r) => r.visible)") == [True, False]
    assert "ranks 1503–1505" in report.hover_text("trace_diagram", start + 1e-4, 1504)
    assert report.problems == []


def test_short_calls_can_be_drawn_more_strongly(open_report, tmp_path: Path) -> None:
    # A hundred calls of 1 ms in 10 s cover 1 % of every pixel or so: nearly white, until emphasised.
    calls = [("pwrite", 0.1 * i, 0.001, 4096) for i in range(100)]
    path = tmp_path / "report.html"
    write_report(run_of(tmp_path / "run", [calls], lasted_s=11.0), path)
    report = open_report(path)
    # The cell that holds the call at 5 s.
    cell = 2.0**23 * 1e-9
    x_s = (5.0 // cell + 0.5) * cell
    pale = sum(report.pixel("trace_diagram", x_s, 0.2))

    def sums_to(holds: Callable[[int], bool]) -> None:
        wait_until_drawn(report.page, lambda: holds(sum(report.pixel("trace_diagram", x_s, 0.2))))

    report.page.get_by_text("enhanced colour scale").click()
    sums_to(lambda colour: colour < pale - 100)
    # By the keyboard, too.
    for key in ("Enter", " "):
        report.page.get_by_text("linear colour scale").press(key)
        sums_to(lambda colour: colour == pale)
        report.page.get_by_text("enhanced colour scale").press(key)
        sums_to(lambda colour: colour < pale - 100)
    assert report.problems == []


def test_one_box_says_what_a_call_is(open_report, tmp_path: Path) -> None:
    # The slowest of a hundred calls is outlined.
    calls = [("pwrite", 0.1 * i, 0.001 + 0.001 * (i == 50), 4096) for i in range(100)]
    path = tmp_path / "report.html"
    write_report(run_of(tmp_path / "run", [calls], lasted_s=11.0), path)
    report = open_report(path)
    assert "write: " in report.hover_text("trace_diagram", 5.001, 0.2)
    report.property_of("trace_diagram", "model.x_range.setv({start: 4.99, end: 5.012}) && 0")
    report.page.wait_for_timeout(300)
    # Neither that of the outline, nor that of the image which the mouse was on.
    text = report.hover_text("trace_diagram", 5.001, 0.2)
    assert (text.count("duration: 2.00 ms"), text.count("%")) == (1, 0), text
    report.property_of("trace_diagram", "model.x_range.reset() ?? 0")
    assert "write: " in report.hover_text("trace_diagram", 3.001, 0.2)
    assert report.problems == []


def test_a_wide_window_has_longer_lines_and_legends_with_more_columns(open_report, four_tasks: Path) -> None:
    report = open_report(four_tasks)
    lines = "model.title.text.split('\\n').length"
    assert report.property_of("rate_write", lines) == 1
    frame = "Bokeh.index.find_one(model).frame.bbox.height"
    report.wait_until("rate_write", f"{frame} > 150")
    report.page.set_viewport_size({"width": 700, "height": 900})
    report.wait_until("rate_write", f"{lines} == 2")
    assert report.problems == []


def test_names_from_a_trace_are_never_code(open_report, tmp_path: Path) -> None:
    evil = "<img src=x onerror=window.cracked=1><script>window.cracked=1</script>"
    properties = {"program": f"/bin/{evil}", "command": f"{evil}\x1f</script>{evil}", "host": evil}
    run = run_of(
        tmp_path / "run",
        [[("write", 0.1, 0.1, 1)]],
        path=f"/tmp/{evil}",
        properties=properties,
        head={"state": 0},
    )
    path = tmp_path / "report.html"
    write_report(run, path)
    report = open_report(path)
    assert report.page.evaluate("window.cracked") is None
    assert report.problems == []
    assert "<script>" in report.page.inner_text("h1") + report.page.inner_text(".command")
    assert "did not end" in report.page.inner_text(".notes")


def test_names_of_calls_from_a_trace_are_never_code(open_report, tmp_path: Path) -> None:
    evil = Call("<img/src=x/onerror=window.cracked=1>$$x$$@{n}", "posix", "write")
    columns = {name: np.zeros(1, dtype) for name, dtype in COLUMNS.items()} | {"duration": np.array([10**9])}
    path = tmp_path / "histogram.html"
    path.write_text(file_html(histogram(Events(columns, [evil], [""])), INLINE, "test"), encoding="utf-8")
    report = open_report(path)
    assert "call: ?img?src?x" in report.hover_text("histogram_linear", 1.0, 0.1)
    assert report.page.evaluate("window.cracked") is None
    assert report.problems == []


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        ([[], []], "There is nothing to draw: no call was recorded"),
        ([[("write", 0.5, 0.0, 10)]], "no recorded call takes time"),
        ([[("open", 0.5, 0.1, 0)]], "no bytes were read or written"),
    ],
    ids=["no events", "no duration", "no bytes"],
)
def test_pictures_with_nothing_in_them_say_why(open_report, tmp_path: Path, tasks, sentence: str) -> None:
    path = tmp_path / "report.html"
    write_report(run_of(tmp_path / "run", tasks), path)
    report = open_report(path)
    assert report.problems == []
    page = path.read_text(encoding="utf-8")
    assert sentence in page + unpacked(page)
