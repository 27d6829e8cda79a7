"""``ensio serve`` and a report in Firefox: brushing both ways, single calls, links, hostile names."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from made_runs import run_of

if importlib.util.find_spec("websocket") is None:
    pytest.skip("websocket-client is not installed: Firefox is not tried", allow_module_level=True)

from firefox import Firefox, firefox, running_firefox

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(firefox() is None, reason="no Firefox on PATH: it is not tried"),
]

HOSTILE = "/scratch/<img src=x onerror=window.hit=1>$$x$$.out"
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)]
    + [("pwrite", 0.85 + 0.0002 * i, 0.0001, 4096) for i in range(300)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
]
READY = (
    "window.Bokeh && Bokeh.documents.length > 0 && Bokeh.documents.every((d) => d.is_idle)"
    " && [...Bokeh.index.query((view) => view.model.name === 'slowest')].some((v) => v.root.has_finished())"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    """The link of a server, and Firefox."""
    folder = tmp_path_factory.mktemp("firefox")
    run = run_of(folder / "<b>run", TASKS, path=HOSTILE)
    command = [sys.executable, "-m", "ensembles.cli.main", "serve", run.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            link = server.stdout.readline().strip()
            with running_firefox(folder) as browser:
                browser.size(1400, 1000)
                yield link, browser
        finally:
            server.terminate()


@pytest.fixture
def page(served) -> Firefox:
    link, browser = served
    browser.requests.clear()
    browser.problems.clear()
    browser.open(link)
    browser.wait(READY)
    yield browser
    assert browser.problems == []
    hosts = {urlsplit(url).netloc for url in browser.requests if not url.startswith(("data:", "blob:"))}
    assert hosts == {urlsplit(link).netloc}


def at(page: Firefox, name: str, x: float, y: float) -> tuple[float, float]:
    """Where a point of a picture is in the window, after scrolling there."""
    script = """(() => {
        const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(NAME));
        view.el.scrollIntoView({block: 'center'});
        const box = view.el.getBoundingClientRect();
        return [box.left + view.frame.x_scale.compute(X), box.top + view.frame.y_scale.compute(Y)];
    })()"""
    return page.evaluate(script.replace("NAME", json.dumps(name)).replace("X", repr(x)).replace("Y", repr(y)))


def found(page: Firefox, text: str) -> None:
    page.wait(f"Bokeh.documents[0].get_model_by_name('found').text.includes({json.dumps(text)})")


def drag(page: Firefox, name: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.drag(at(page, name, *start), at(page, name, *end))


def test_brushes_both_ways_and_the_link(page: Firefox) -> None:
    found(page, "305 calls are shown")
    drag(page, "explorer_histogram", (0.3, 1.0), (0.9, 3.0))
    found(page, "2 calls are marked, of 2 of 2 ranks")
    page.wait("location.search.includes('marked-durations')")
    address = page.evaluate("location.href")
    drag(page, "explorer_trace", (0.1, -0.4), (0.6, 0.4))
    found(page, "1 call is marked, of 1 of 2 ranks")
    page.open(address)
    page.wait(READY)
    found(page, "2 calls are marked, of 2 of 2 ranks")


def test_a_single_call_is_zoomed_to_and_its_box_tells_it(page: Firefox) -> None:
    page.evaluate("Bokeh.documents[0].get_model_by_name('slowest').source.selected.setv({indices: [0]})")
    page.wait("location.search.includes('shown-time')")
    page.point(*at(page, "explorer_trace", 0.5, 0.0))
    texts = """(() => {
        const all = (root) => [...root.querySelectorAll('*')]
            .flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
        return all(document).filter((e) => e.className === 'bk-tooltip-content')
            .map((e) => e.innerText).join(' ');
    })()"""
    page.wait(f"({texts}).includes('pwrite')")
    box = page.evaluate(texts)
    assert "1.00 MiB (1,048,576 B)" in box
    assert "500 ms" in box
    assert "<img src=x" in box
    assert page.evaluate("window.hit === undefined")


def test_hostile_names_are_text(page: Firefox) -> None:
    page.wait("document.body !== null")
    assert page.evaluate("window.hit === undefined")
    assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


def test_a_report_needs_no_network(served, tmp_path: Path) -> None:
    _, browser = served
    run = run_of(tmp_path / "run", TASKS, path=HOSTILE)
    run.report(tmp_path / "report.html")
    browser.requests.clear()
    browser.problems.clear()
    browser.open((tmp_path / "report.html").as_uri())
    browser.wait("document.documentElement.dataset.drawing === 'done'")
    assert browser.problems == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests)
    assert browser.evaluate("window.hit === undefined")
