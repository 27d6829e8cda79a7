"""``ensio serve`` in a real browser: brushing both ways, links, tokens, origins, hostile names."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib.util
import io
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from bokeh.util.token import generate_jwt_token, generate_session_id
from made_runs import run_of
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from ensembles.viz.common.style import COLOURS
from ensembles.viz.common.theme import DARK
from ensembles.viz.explorer.server import png_of

if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    pytest.skip("playwright or Pillow is not installed: the explorer is not tried", allow_module_level=True)

from browser import PATIENCE_MS, chromium, new_context, wait_until_drawn
from drawn_texts import WATCH, drawn_figures
from explorer_page import (
    AT,
    HOSTILE,
    IS_COMPLETE,
    TASKS,
    WINDOW,
    begin,
    choose,
    drag,
    found,
    serving,
    wait_for_pictures,
)
from PIL import Image

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH: the explorer is not tried"),
]


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorer")
    run = run_of(folder / "<b>run", TASKS, path=HOSTILE)
    with serving([run.path]) as printed:
        yield printed


@pytest.fixture(scope="module")
def context():
    with new_context(viewport=WINDOW) as context:
        yield context


@pytest.fixture(scope="module")
def browsed(context, link):
    """A function that opens a page, and the list of what went wrong on any."""
    problems: list[str] = []
    host = urlsplit(link).netloc

    def open_page():
        page = context.new_page()
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: _check_host(request.url, host, problems))
        page.goto(link)
        wait_for_pictures(page)
        return page

    return open_page, problems


@pytest.fixture
def opened(browsed):
    """The function; problems of all pages are checked at the end."""
    open_page, problems = browsed
    pages = []
    yield lambda: pages.append(open_page()) or pages[-1]
    for page in pages:
        page.close()  # else it goes on drawing
    assert not problems


@pytest.fixture(scope="module")
def first_page(browsed):
    """One page for tests that undo, by `begin`, what those before them did: to open it takes seconds."""
    return browsed[0]()


@pytest.fixture
def shown(first_page, opened):
    """The page, with nothing chosen."""
    first_page.bring_to_front()
    begin(first_page, "5 calls")
    return first_page


def _check_host(url: str, host: str, problems: list[str]) -> None:
    if not url.startswith(("data:", "blob:")) and urlsplit(url).netloc != host:
        problems.append(f"request: {url}")


def test_a_peak_marks_calls(shown) -> None:
    page = shown
    found(page, "5 calls are shown")
    # Another bar of a kind of calls that has a marked one.
    other = page.evaluate("""() => {
        const {left, right} = Bokeh.documents[0].get_model_by_name("all_write").data_source.data;
        return (left[0] + right[0]) / 2;
    }""")
    assert other < 0.1
    whole = pixel(page, "explorer_histogram", other, 0.7)
    # Longer than Bokeh takes a press for another gesture.
    drag(page, "explorer_histogram", (0.3, 1.0), (0.9, 1.5), rests_ms=400)
    found(page, "2 calls are marked, of 2 of 2 ranks")
    page.wait_for_function("() => location.search.includes('marked-durations')")
    query = page.evaluate("() => location.search")
    wait_until_drawn(page, lambda: min(pixel(page, "explorer_histogram", other, 0.7)) > min(whole) + 30)
    page.get_by_role("button", name="Clear the marked calls").click()
    found(page, "5 calls are shown")
    wait_until_drawn(page, lambda: pixel(page, "explorer_histogram", other, 0.7) == whole)
    assert "token=" not in query


def pixel(page, name: str, x: float, y: float) -> tuple[int, ...]:
    left, top = page.evaluate(AT, [name, x, y])
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB").getpixel((round(left), round(top)))


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def test_dark_pages_have_the_colours_of_the_report(opened) -> None:
    page = opened()
    for scheme in ("light", "dark", "light", "dark"):
        page.emulate_media(color_scheme=scheme)
        paper = rgb(DARK["#ffffff"] if scheme == "dark" else "#ffffff")
        wait_until_drawn(page, lambda paper=paper: pixel(page, "explorer_trace", 0.78, 0.1) == paper)
        assert pixel(page, "explorer_trace", 0.5, 0.1) == rgb(COLOURS["write"])
    # Pictures that come later are dark too, and the server is told of nothing.
    page.get_by_label("op").fill("read")
    page.keyboard.press("Enter")
    found(page, "1 call is shown")
    wait_until_drawn(page, lambda: pixel(page, "explorer_trace", 0.75, 1.1) == rgb(COLOURS["read"]))
    assert pixel(page, "explorer_trace", 0.75, 0.0) == rgb(DARK["#ffffff"])


_FIRST_ROW = """() => {
    const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name('slowest'));
    return view.el.shadowRoot.querySelector('.slick-row')?.innerText.split('\\n')[1];
}"""


def test_what_is_seen_follows_each_mark(context, tmp_path: Path) -> None:
    """More calls than are drawn one by one, and as many rows of the table before as after."""
    tasks = [
        [("pwrite", 0.001 * i, 0.0009, 4096) for i in range(1500)]
        + [("pread", 2.0 + 0.0003 * i, 0.0002, 4096) for i in range(1500)]
        for _ in range(2)
    ]
    run = run_of(tmp_path / "run", tasks, lasted_s=3.0)

    with serving([run.path]) as link:
        page = context.new_page()
        page.goto(link)
        page.wait_for_function(f"() => window.Bokeh?.documents[0]?.is_idle && {IS_COMPLETE}")
        found(page, "6,000 calls are shown")
        page.wait_for_function(f"() => ({_FIRST_ROW})() === 'pwrite'")
        whole = pixel(page, "explorer_trace", 0.75, 0.0)
        drag(page, "explorer_histogram", (1.5e-4, 2.0), (3e-4, 20.0))
        found(page, "3,000 calls are marked")
        page.wait_for_function(f"() => ({_FIRST_ROW})() === 'pread'")
        wait_until_drawn(page, lambda: min(pixel(page, "explorer_trace", 0.75, 0.0)) > min(whole) + 60)
        page.get_by_role("button", name="Clear the marked calls").click()
        page.wait_for_function(f"() => ({_FIRST_ROW})() === 'pwrite'")
        wait_until_drawn(page, lambda: pixel(page, "explorer_trace", 0.75, 0.0) == whole)
        page.close()


def test_a_rectangle_marks_calls(shown) -> None:
    page = shown
    drag(page, "explorer_trace", (0.1, -0.4), (0.6, 0.4))
    found(page, "1 call is marked, of 1 of 2 ranks")
    page.get_by_role("button", name="Clear the marked calls").click()
    found(page, "5 calls are shown")


IS_SHOWN = """(wanted) => {
    const [view] = Bokeh.index.query((each) => each.model.name === 'working');
    return getComputedStyle(view.el).visibility === wanted;
}"""


@contextlib.contextmanager
def held(page, server):
    """Stop the server during a gesture: the page shows the sign of work without it."""
    page.wait_for_function(IS_SHOWN, arg="hidden")
    server.send_signal(signal.SIGSTOP)
    try:
        yield
        page.wait_for_function(IS_SHOWN, arg="visible")
    finally:
        server.send_signal(signal.SIGCONT)
    page.wait_for_function(IS_SHOWN, arg="hidden")


def test_work_that_takes_long_is_shown_until_it_is_done(opened, link) -> None:
    page = opened()
    with held(page, link.server):
        drag(page, "explorer_trace", (0.1, -0.4), (0.6, 0.4))
    found(page, "1 call is marked")
    with held(page, link.server):
        page.get_by_role("button", name="Clear the marked calls").click()
    found(page, "5 calls are shown")
    with held(page, link.server):
        page.evaluate("Bokeh.documents[0].get_model_by_name('explorer_trace').x_range.end = 0.5")
    found(page, "In view")
    with held(page, link.server):
        choose(page, "by_rank", 0)
    found(page, "Marked: rank")
    with held(page, link.server):
        page.get_by_label("op", exact=True).fill("read")
        page.keyboard.press("Enter")
    found(page, "No call is marked")
    wait_for_pictures(page)
    with held(page, link.server):  # the pictures are new
        drag(page, "explorer_histogram", (0.4, 1.0), (0.6, 1.5))
    page.close()


def test_a_narrow_page_shows_all_and_marks_by_touch(context, link) -> None:
    phone = context.browser.new_context(
        viewport={"width": 380, "height": 800}, has_touch=True, is_mobile=True
    )
    phone.set_default_timeout(PATIENCE_MS)
    phone.add_init_script(WATCH)
    page = phone.new_page()
    page.goto(link)
    wait_for_pictures(page)
    page.wait_for_function(
        "[...Bokeh.documents[0].all_models].some((each) => each.wide_height < each.height)"
    )
    page.wait_for_timeout(500)
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [380, 380]
    cut = {figure.name: figure.cut_off() for figure in drawn_figures(page)}
    assert len(cut) == 4
    assert not any(cut.values()), cut
    left, top = page.evaluate(AT, ["explorer_trace", 0.1, -0.4])
    right, bottom = page.evaluate(AT, ["explorer_trace", 0.6, 0.4])
    touches = phone.new_cdp_session(page)
    for step in range(6):
        x, y = left + (right - left) * step / 5, top + (bottom - top) * step / 5
        kind = "touchMove" if step else "touchStart"
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        page.wait_for_timeout(30)
    touches.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    found(page, "1 call is marked, of 1 of 2 ranks")
    phone.close()


def test_a_filter_reduces_every_view(shown) -> None:
    page = shown
    page.get_by_label("op", exact=True).fill("read")
    page.keyboard.press("Enter")
    found(page, "1 call is shown, of 1 of 2 ranks")
    page.wait_for_function("() => location.search.includes('op=read')")


def test_hostile_names_are_text(shown) -> None:
    page = shown
    page.get_by_text("<img src=x", exact=False).first.wait_for()
    assert page.evaluate("() => window.hit === undefined")
    assert page.locator("img[src=x]").count() == 0


def session_of(link: str) -> tuple[str, str]:
    """Open the link: the path of the page, and the cookie."""
    address = urlsplit(link)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
    connection.request("GET", f"/?{address.query}")
    headers = connection.getresponse().headers
    connection.close()
    return headers["Location"], headers["Set-Cookie"].partition(";")[0]


def websocket(link: str, session: str, origin: str, cookie: str = "") -> str | None:
    """The first message of a websocket with a session of Bokeh; None: it is closed without one."""
    base, own = session_of(link)

    async def answer() -> str | None:
        headers = {"Origin": origin, "Cookie": cookie or own}
        request = HTTPRequest(f"ws://{urlsplit(link).netloc}{base}ws", headers=headers)
        connection = await websocket_connect(request, subprotocols=["bokeh", session])
        try:
            return await asyncio.wait_for(connection.read_message(), 30)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:  # the browser has the event loop of this one
        return thread.submit(lambda: asyncio.run(answer())).result()


UNSIGNED = generate_jwt_token(generate_session_id(signed=False), signed=False)


def test_a_connection_without_a_page_before_it_is_closed(link: str) -> None:
    """A session that the server has not signed is closed without an answer, whatever the cookie."""
    assert websocket(link, UNSIGNED, f"http://{urlsplit(link).netloc}") is None


@pytest.mark.parametrize("which", ["elsewhere", "other port", "no cookie"])
def test_another_origin_and_another_browser_are_refused(link: str, which: str) -> None:
    ours = f"http://{urlsplit(link).netloc}"
    others = {"elsewhere": "http://elsewhere.example", "other port": f"http://{urlsplit(link).hostname}:1"}
    with pytest.raises(HTTPClientError) as refused:
        websocket(link, UNSIGNED, others.get(which, ours), "ensio=x" if which == "no cookie" else "")
    assert refused.value.code == 403


def test_an_address_for_other_machines_needs_a_warning(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", TASKS)
    command = [sys.executable, "-m", "ensembles.cli.main", "serve", run.path, "--address", "0.0.0.0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout.readline().startswith("http://0.0.0.0:")
    server.terminate()
    assert "can be reached by other machines" in server.communicate(timeout=600)[1]


def test_the_slowest_call_is_zoomed_to_and_its_box_tells_it(shown) -> None:
    page = shown
    found(page, "5 calls are shown")
    choose(page, "slowest", 0)
    page.wait_for_function("() => location.search.includes('shown-time')")
    page.wait_for_timeout(500)
    left, top = page.evaluate(AT, ["explorer_trace", 0.5, 0.0])
    page.mouse.move(left - 3, top)
    page.mouse.move(left, top, steps=3)
    box = page.locator(".bk-tooltip-content:visible").first
    box.wait_for()
    text = " ".join(box.inner_text().split())
    assert "call: pwrite" in text
    assert "size: 1.00 MiB (1,048,576 B)" in text
    assert "duration: 500 ms" in text
    assert "<img src=x" in text


_TIMES = """() => {
    // The document forgets models that were replaced some time later; their views are gone.
    const times = [...Bokeh.index.query((view) => view.model.name === 'explorer_trace')][0].model.x_range;
    return [times.start, times.end];
}"""


def test_zooming_with_the_wheel_shows_the_window(shown) -> None:
    page = shown
    left, top = page.evaluate(AT, ["explorer_trace", 0.5, 0.0])
    page.mouse.move(left, top)
    page.keyboard.down("Control")
    for _ in range(8):
        page.mouse.wheel(0, -200)
    page.wait_for_function("() => location.search.includes('shown-time')")
    # Over the picture the wheel zooms time only; over the axis of ranks, these.
    assert "shown-ranks" not in page.evaluate("() => location.search")
    before = page.evaluate(_TIMES)
    left, top = page.evaluate(AT, ["explorer_trace", before[0], 0.0])
    page.mouse.move(left - 20, top, steps=3)
    for _ in range(8):
        page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function("() => location.search.includes('shown-ranks')")
    assert page.evaluate(_TIMES) == before
    page.get_by_role("button", name="Whole run").click()
    page.wait_for_function("() => !location.search.includes('shown-time')")


def test_a_phase_marks_its_calls(shown) -> None:
    page = shown
    found(page, "5 calls are shown")
    choose(page, "phases", 0)
    found(page, "Marked: phase 1.")
    page.wait_for_function("() => location.search.includes('marked-phase=1')")


def test_two_runs_zoom_together(context, tmp_path: Path) -> None:
    tasks = [
        [("pwrite", 0.25, 0.5, 1 << 20, 0), ("pwrite", 0.8, 0.02, 1 << 20, 1 << 20)],
        [("pread", 0.5, 0.5, 1 << 19, 0)],
    ]
    runs = [run_of(tmp_path / name, tasks).path for name in ("one", "other")]
    with serving(runs) as link:
        page = context.new_page()
        page.goto(link)
        wait_for_pictures(page)
        drag(page, "explorer_histogram", (0.3, 1.0), (0.9, 1.5))
        found(page, f"2 calls are marked of {runs[1]}")
        page.get_by_role("button", name="Zoom to the marked calls").click()
        page.wait_for_function("() => location.search.includes('shown-time')")
        assert page.evaluate(
            "() => Bokeh.documents[0].get_model_by_name('explorer_trace').x_range.id == "
            "Bokeh.documents[0].get_model_by_name('explorer_trace_beside').x_range.id"
        )
        # Pictures name their run, and the page goes to the answer to a question, which is below all of them.
        titles = page.evaluate(_TITLES)
        for name in ("one", "other"):
            named = [title for title in titles if re.search(rf"(of|run) …\S*/{name}: ", title)]
            assert len(named) == 2, titles
        page.evaluate("window.scrollTo(0, 0)")
        button = page.get_by_role("button", name="Compare both runs")
        button.dispatch_event("click")
        page.wait_for_function(_IN_VIEW, arg="of_modes")
        page.close()


_TITLES = """() => [...Bokeh.index.query((view) => /^explorer_(trace|offsets)/.test(view.model.name ?? ''))]
    .filter((view) => view.model.title).map((view) => view.model.title.text.split(/\\s+/).join(' '))"""

_IN_VIEW = """(name) => {
    const model = Bokeh.documents[0].get_model_by_name(name);
    const box = Bokeh.index.find_one(model).el.getBoundingClientRect();
    return model.text && box.top >= 0 && box.top < window.innerHeight;
}"""


def test_a_page_shows_the_run_before_its_program_has_come(context, link: str) -> None:
    page = context.new_page()
    page.route("**/bokeh*.js*", lambda route: route.abort())
    page.goto(link, wait_until="commit")
    image = page.locator("#first-image img")
    image.wait_for()
    assert page.evaluate("() => document.querySelector('#first-image img').decode().then(() => true)")
    assert image.evaluate("(each) => each.naturalWidth") > 10
    page.close()


def test_the_first_image_gives_way_to_the_trace_diagram(shown) -> None:
    page = shown
    page.wait_for_function("() => document.getElementById('first-image') === null")


def test_the_first_image_has_the_colours_and_times_of_the_calls() -> None:
    shares = np.zeros((3, 4, 2), np.uint8)
    shares[0, 1] = (255, 0)
    shares[2, 3] = (51, 51)
    drawn = np.asarray(Image.open(io.BytesIO(png_of(shares, ["write", "read"]))))
    assert drawn.shape == (3, 4, 4)
    write, read = (
        np.array([int(COLOURS[name][at : at + 2], 16) for at in (1, 3, 5)]) for name in ("write", "read")
    )
    assert drawn[0, 1].tolist() == [*write, 255]
    assert drawn[2, 3, :3] == pytest.approx((write + read) / 2, abs=1)
    assert drawn[2, 3, 3] == round(255 * 0.4**0.4)
    assert (drawn[..., 3] > 0).sum() == 2


def test_a_large_first_image_is_averaged() -> None:
    shares = np.zeros((1000, 2048, 1), np.uint8)
    shares[:, 1024:] = 255
    drawn = np.asarray(Image.open(io.BytesIO(png_of(shares, ["write"]))))
    assert drawn.shape == (250, 1024, 4)
    assert drawn[:, :512, 3].max() == 0
    assert drawn[:, 512:, 3].min() == 255


_FOCUSED = """() => {
    let focused = document.activeElement;
    while (focused.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
    return [focused.getAttribute('aria-label') ?? '', focused.shadowRoot?.textContent ?? ''];
}"""
_DURATIONS = """() => {
    const durations = Bokeh.documents[0].get_model_by_name('explorer_histogram').x_range;
    return durations.end / durations.start;
}"""


_RENAME = """() => {
    const trace = Bokeh.documents[0].get_model_by_name('explorer_trace');
    const html_attributes = {...trace.html_attributes, 'aria-label': 'Another title'};
    trace.setv({html_attributes}, {sync: false});
}"""


_FOCUSED_TABLE = """() => {
    const [view] = Bokeh.index.query((each) => each.grid?.setActiveCell && each.el.shadowRoot.activeElement);
    return view?.model.name ?? '';
}"""


_WITH_FINDING = """() => {
    const table = Bokeh.documents[0].get_model_by_name('findings');
    const data = {id: ['a'], severity: ['note'], title: ['words '.repeat(16)], gain: ['']};
    table.source.setv({data}, {sync: false});
    table.setv({tags: ['rows as high as their texts', 3], visible: true}, {sync: false});
}"""


def _picture_by_tab(page, title: str) -> str:
    """Go on by the tabulator key to a picture, and return the help that it shows."""
    for _ in range(60):
        page.keyboard.press("Tab")
        label, text = page.evaluate(_FOCUSED)
        if label.startswith(title):
            return text
    pytest.fail(f"the tabulator key does not reach {title!r}")


def test_a_reader_without_a_mouse_zooms_moves_and_marks(opened) -> None:
    page = opened()
    whole = page.evaluate(_TIMES)
    assert "+ − zoom, ← → move (time)" in _picture_by_tab(page, "Trace diagram")
    page.keyboard.press("-")  # the whole run is in view already
    assert page.evaluate(_TIMES) == whole
    page.keyboard.press("+")
    # As when single calls come: the title, an attribute, is another one. It is set until it is there,
    # for the server's answer to the zoom may bring the old one back.
    page.wait_for_function(f"() => {{ ({_RENAME})(); return ({_FOCUSED})()[0] === 'Another title'; }}")
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    middle, width = sum(whole) / 2, whole[1] - whole[0]
    assert page.evaluate(_TIMES) == pytest.approx([middle - 0.15 * width, middle + 0.35 * width])
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("ArrowUp")
    page.wait_for_function("() => location.search.includes('shown-ranks=-0.2..0.8')")
    page.keyboard.press("Home")
    page.wait_for_function("() => !location.search.includes('shown-')")
    assert page.evaluate(_TIMES) == whole
    assert "(durations)" in _picture_by_tab(page, "Durations")
    before = page.evaluate(_DURATIONS)
    page.keyboard.press("+")
    assert page.evaluate(_DURATIONS) == pytest.approx(before**0.5)
    page.keyboard.press("0")
    assert page.evaluate(_DURATIONS) == pytest.approx(before)
    page.get_by_label("marked time (s)").focus()
    page.keyboard.type("0.1..0.6")
    page.keyboard.press("Enter")
    found(page, "2 calls are marked")
    page.wait_for_function("() => location.search.includes('marked-time=0.1..0.6')")
    # Rows of findings are as high as their texts in the width of the page, which Python does not know.
    page.evaluate(_WITH_FINDING)
    height = "() => Bokeh.documents[0].get_model_by_name('findings').row_height"
    for width, expected in ((500, 68), (1900, 25)):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"{height.removeprefix('() => ')} === {expected}")
    page.evaluate(
        "() => Bokeh.documents[0].get_model_by_name('findings').setv({visible: false}, {sync: false})"
    )
    page.set_viewport_size(WINDOW)
    # The tabulator key goes through the tables and chooses no row; an arrow does.
    link, tables = page.evaluate("() => location.search"), []
    while not tables or tables[-1] != "by_rank":
        page.keyboard.press("Tab")
        tables.append(page.evaluate(_FOCUSED_TABLE))
        assert len(tables) < 120, tables
    assert "slowest" in tables
    assert len(set(filter(None, tables))) == len(list(filter(None, tables)))  # one stop each
    page.wait_for_timeout(300)
    assert page.evaluate("() => location.search") == link
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => location.search.includes('marked-ranks=')")
