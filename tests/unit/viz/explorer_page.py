"""What the tests of the explorer share: a small run, its server, and what a reader does in the page."""

from __future__ import annotations

import contextlib
import subprocess
import sys

WINDOW = {"width": 1400, "height": 1000}
HOSTILE = "/scratch/<img src=x onerror=window.hit=1>$$x$$.out"
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
]

AT = """([name, x, y]) => {
    // The document forgets models that were replaced some time later; their views are gone.
    const [view] = Bokeh.index.query((each) => each.model.name === name);
    view.el.scrollIntoView({block: 'center'});
    const box = view.el.getBoundingClientRect();
    return [box.left + view.frame.x_scale.compute(x), box.top + view.frame.y_scale.compute(y)];
}"""


# Tables and the lower pictures come after the first ones have been drawn.
IS_COMPLETE = """
    [...Bokeh.index.query((view) => view.model.name === 'slowest')].some((view) => view.root.has_finished())
"""


class Link(str):
    """A link to a page, with the process that answers it."""

    server: subprocess.Popen


@contextlib.contextmanager
def serving(arguments: list[str]):
    command = [sys.executable, "-m", "ensembles.cli.main", "serve", *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        link = Link(server.stdout.readline().strip())
        link.server = server
        yield link
    finally:
        server.terminate()
        server.communicate(timeout=600)


def wait_for_pictures(page) -> None:
    """Wait until all of the page has been drawn."""
    page.wait_for_function(
        "() => window.Bokeh && Bokeh.documents.length > 0 && Bokeh.documents.every((d) => d.is_idle)"
        f" && {IS_COMPLETE}",
    )


def drag(page, name: str, start: tuple[float, float], end: tuple[float, float], rests_ms: float = 0) -> None:
    """Drag over a picture; the mouse rests for some time after its button is pressed."""
    left, top = page.evaluate(AT, [name, *start])
    right, bottom = page.evaluate(AT, [name, *end])
    page.mouse.move(left, top)
    page.mouse.down()
    page.wait_for_timeout(rests_ms)
    page.mouse.move(right, bottom, steps=5)
    page.mouse.up()


def found(page, text: str) -> None:
    page.wait_for_function(
        "(text) => Bokeh.documents[0].get_model_by_name('found').text.includes(text)",
        arg=text,
    )


def choose(page, table: str, row: int) -> None:
    """Click a row of a table."""
    page.evaluate(
        "(name) => Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name)).el.scrollIntoView()",
        table,
    )
    box = page.evaluate(
        """(name) => {
            const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name));
            const box = view.el.getBoundingClientRect();
            return [box.left, box.top];
        }""",
        table,
    )
    page.mouse.click(box[0] + 30, box[1] + 25 + 25 * row + 12)


_STATE = """() => {
    const model = (name) => Bokeh.documents[0].get_model_by_name(name);
    // The document forgets models that were replaced some time later; their views are gone.
    const trace = [...Bokeh.index.query((view) => view.model.name === 'explorer_trace')][0].model;
    const plain = (column) => Array.from(column, (value) => Number.isNaN(value) ? 'nan' : value);
    return {
        found: model('found').text,
        texts: model('texts').data,
        filters: [...Bokeh.documents[0].all_models].filter((each) => /^filter_/.test(each.name ?? ''))
            .map((each) => [each.name, each.value]).sort(),
        axes: [trace.x_range.start, trace.x_range.end, trace.y_range.start, trace.y_range.end],
        slowest: plain(model('slowest').source.data.start_s),
        ranks: plain(model('by_rank').source.data.rank),
        link: location.search,
    };
}"""


def fill(page, name: str, text: str) -> None:
    page.evaluate(
        "([name, text]) => { Bokeh.documents[0].get_model_by_name(`filter_${name}`).value = text; }",
        [name, text],
    )


def settled(page) -> dict:
    """The state of the page, when the server has answered all questions and it has stopped to change."""
    before = None
    for _ in range(100):
        page.wait_for_timeout(200)
        page.wait_for_function("() => !Bokeh.documents[0].get_model_by_name('working').tags[0].waiting")
        state = page.evaluate(_STATE)
        if state == before:
            return state
        before = state
    raise AssertionError("the page does not come to rest")


CHOSEN = "/[?&](op|size|marked-|shown-)/.test(location.search)"


def begin(page, calls: str) -> None:
    """Forget what a test before has chosen on the page: all calls are shown again."""
    for name in ("op", "size"):
        fill(page, name, "")
    for name in ("Clear the marked calls", "Whole run"):
        page.get_by_role("button", name=name).click()
    page.wait_for_function(f"() => !{CHOSEN}")
    found(page, f"{calls} are shown")
    settled(page)
