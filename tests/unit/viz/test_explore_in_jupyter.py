"""``viz.explore`` in a real JupyterLab and Notebook 7: brushing and Python, through the port of Jupyter."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from made_runs import run_of

LIBRARIES = ("anywidget", "jupyterlab", "playwright", "PIL")
if lacking := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
    pytest.skip(f"{lacking[0]} is not installed: JupyterLab is not tried", allow_module_level=True)

from browser import chromium, new_context  # noqa: E402
from explorer_page import HOSTILE, TASKS, drag, found  # noqa: E402
from one_port import forwarded  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH: JupyterLab is not tried"),
]

CELLS = [
    "import ensembles as en\nfrom ensembles import viz\nexplorer = viz.explore(en.open('run'))\nexplorer",
    "from dataclasses import replace\n"
    "explorer.view = replace(explorer.view, filters={'op': 'read'}, durations_s=None)",
    "print('marked', len(explorer.marked), explorer.view.query())",
    "from bokeh.io import output_notebook, show\nfrom bokeh.resources import INLINE\n"
    "from ensembles import viz\nimport ensembles as en\n"
    "output_notebook(INLINE, hide_banner=True)\nshow(viz.rate(en.open('run')))",
]
TOKEN = "a-token-of-the-test"


def notebook() -> dict:
    cells = [
        {
            "cell_type": "code",
            "id": f"cell{number}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": source,
        }
        for number, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


# Module, the class of its settings, the path of a notebook, and the flag of a cell.
APPLICATIONS = {
    "lab": ("jupyterlab", "LabApp", "lab/tree"),
    "notebook": ("notebook", "JupyterNotebookApp", "notebooks"),
}


# Notebook 7 is made of the parts of JupyterLab.
@pytest.fixture(scope="module", params=["lab", pytest.param("notebook", marks=pytest.mark.long)])
def lab(tmp_path_factory, request):
    """A Jupyter server in its own folders: its address, the folder of its notebooks, and their path."""
    module, application, path = APPLICATIONS[request.param]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: it is not tried")
    folder = tmp_path_factory.mktemp(request.param)
    run_of(folder / "run", TASKS, path=HOSTILE)
    own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        f"--IdentityProvider.token={TOKEN}",
        f"--{application}.expose_app_in_browser=True",
        "--LabApp.news_url=None",
        "--LabApp.extension_manager=readonly",
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            env={**os.environ, **own, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")},
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}", server, folder / "log")
        with forwarded(port) as proxy:
            yield f"http://127.0.0.1:{proxy}", folder, path
    finally:
        server.terminate()
        server.wait(timeout=600)


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(log.read_text())


class Lab:
    """A notebook that is open in JupyterLab."""

    def __init__(self, page, address: str, path: str, query: str = f"?token={TOKEN}") -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("request", lambda request: self._check(request.url, address))
        page.on("websocket", lambda channel: self._check(channel.url, address.replace("http", "ws")))
        page.on("console", self._check_console)
        page.on("pageerror", self._check_error)
        page.goto(f"{address}/{path}/story.ipynb{query}")
        self.ready()

    def _check(self, url: str, address: str) -> None:
        if not url.startswith(("data:", "blob:", address + "/")):
            self.problems.append(f"request: {url}")

    def _check_console(self, message) -> None:
        # Notebook 7 reports what its installation lacks as errors.
        if message.type == "error" and "/lab/" in self.page.url:
            self.problems.append(f"{message.text} ({message.location['url']})")

    def _check_error(self, error) -> None:
        # In scripts of Notebook 7 itself, whose settings are asked for before they are there.
        if "/lab/" in self.page.url or "/static/" not in (error.stack or ""):
            self.problems.append(f"{error}: {error.stack}")

    def ready(self) -> None:
        self.page.wait_for_function("() => window.jupyterapp")
        self.page.locator(".jp-Notebook .jp-CodeCell").nth(2).wait_for()
        self.page.wait_for_function(
            "() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
        )

    def run_cell(self, number: int) -> None:
        self.page.evaluate(
            """async (number) => {
                const content = jupyterapp.shell.currentWidget.content;
                content.activeCellIndex = number;
                await jupyterapp.commands.execute('notebook:run-cell');
            }""",
            number,
        )

    def explorer(self) -> None:
        self.page.wait_for_function("() => window.Bokeh?.documents.length > 0 && Bokeh.documents[0].is_idle")


@pytest.fixture
def opened(lab):
    address, folder, path = lab
    (folder / "story.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    with new_context(viewport={"width": 1500, "height": 1600}) as context:
        shown = Lab(context.new_page(), address, path)
        yield shown, folder
        assert shown.problems == []


def test_the_explorer_works_both_ways_through_one_port(opened) -> None:
    lab, folder = opened
    lab.run_cell(0)
    lab.explorer()
    page = lab.page
    found(page, "5 calls are shown")
    address = page.url

    drag(page, "explorer_histogram", (0.3, 1.0), (0.9, 1.5))
    dragged = time.perf_counter()
    found(page, "2 calls are marked, of 2 of 2 ranks")
    print(f"from the end of the drag to the updated page: {time.perf_counter() - dragged:.3f} s")
    drawn = "() => Bokeh.documents[0].get_model_by_name('explorer_trace').renderers[1].data_source.data.image"
    assert page.evaluate(f"{drawn}.length") == 1  # the marked calls in the trace diagram
    lab.run_cell(2)
    page.get_by_text("marked 2 marked-durations=").wait_for()
    if "/lab/" in page.url:  # Notebook 7 has one view of a notebook
        a_second_view_shows(page, "2 calls are marked")

    lab.run_cell(1)
    found(page, "1 call is shown, of 1 of 2 ranks")
    lab.run_cell(2)
    page.get_by_text("marked 1 op=read").wait_for()
    assert page.url == address  # the address is Jupyter's
    assert page.evaluate("() => window.hit === undefined")

    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !jupyterapp.shell.currentWidget.context.model.dirty")
    saved = folder / "story.ipynb"
    assert "widget-view" in saved.read_text(encoding="utf-8")
    assert saved.stat().st_size < len(json.dumps(notebook())) + 8192

    if os.environ.get("ENSIO_TEST_PICTURES"):
        page.screenshot(path=f"{os.environ['ENSIO_TEST_PICTURES']}/jupyterlab.png")


def a_second_view_shows(page, text: str) -> None:
    """Another view of the output shows what is marked now; it is closed again."""
    page.evaluate(
        """async () => {
            window.story = jupyterapp.shell.currentWidget;
            story.content.activeCellIndex = 0;
            await jupyterapp.commands.execute("notebook:create-output-view");
        }"""
    )
    page.wait_for_function("() => Bokeh.documents.length === 2")
    page.wait_for_function(
        "(text) => Bokeh.documents[1].get_model_by_name('found')?.text.includes(text)",
        arg=text,
    )
    page.evaluate(
        """() => {
            [...jupyterapp.shell.widgets("main")].forEach((each) => each === story || each.close());
            jupyterapp.shell.activateById(story.id);
        }"""
    )
    page.wait_for_function("() => jupyterapp.shell.currentWidget === story")


# What has the focus, also in shadow trees.
FOCUSED = """() => {
    let focused = document.activeElement;
    while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
    return focused?.textContent ?? "";
}"""
MODE = """() => {
    const { content } = jupyterapp.shell.currentWidget;
    return [content.mode, content.activeCellIndex, content.widgets.length];
}"""


FOCUS_ON_TRACE = """() => {
    const [view] = Bokeh.index.query((each) => each.model.name === "explorer_trace");
    view.el.focus();
}"""
IS_ZOOMED = "Bokeh.documents[0].get_model_by_name('field_shown-time').value !== ''"


def entry_by_tab(page, name: str) -> None:
    """Go on by the tabulator key until a button of a legend has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    pytest.fail(f"the tabulator key does not reach {name!r}")


def test_keys_pressed_in_pictures_and_fields_stay_there_and_texts_are_readable_on_white(opened) -> None:
    lab, _ = opened
    legends_answer(lab, 0, "explorer_rates")
    fields_keep_enter(lab)
    legends_answer(lab, 3, "rate")
    lab.page.keyboard.press("b")  # a key of Jupyter, which stays
    lab.page.wait_for_function(f"() => ({MODE})()[2] === {len(CELLS) + 1}")


def legends_answer(lab: Lab, cell: int, figure: str) -> None:
    """Entries of legends answer to the keyboard."""
    page = lab.page
    lab.run_cell(cell)
    visible = f"""() => Bokeh.documents.map((each) => each.get_model_by_name('{figure}')).find((each) => each)
        ?.renderers.filter((each) => each.visible).length ?? 0"""
    page.wait_for_function(f"() => window.Bokeh && ({visible})() > 0")
    lab.explorer()
    whole = page.evaluate(visible)
    # The cell has the focus, in command mode.
    page.evaluate("() => jupyterapp.commands.execute('notebook:enter-command-mode')")
    mode = page.evaluate(MODE)
    assert mode == ["command", cell, len(CELLS)]
    entry_by_tab(page, "show or hide write")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => ({visible})() < {whole}")
    page.keyboard.press(" ")
    page.wait_for_function(f"() => ({visible})() === {whole}")
    if cell == 0:  # a picture of the explorer has the focus: arrows and 0 are not Jupyter's then
        page.evaluate(FOCUS_ON_TRACE)
        for key in ("+", "ArrowDown", "0", "0", "+"):
            page.keyboard.press(key)
        page.wait_for_function("() => jupyterapp.shell.currentWidget && " + IS_ZOOMED)
        assert page.evaluate(MODE) == mode
        assert page.locator(".jp-Dialog").count() == 0
        page.keyboard.press("0")
        page.wait_for_function(f"() => !({IS_ZOOMED})")
        entry_by_tab(page, "show or hide write")
    # Jupyter neither edits the cell nor runs it.
    assert page.evaluate(MODE) == mode
    assert page.evaluate(FOCUSED) == "show or hide write"


def fields_keep_enter(lab: Lab) -> None:
    """VS Code edits the cell on Enter, and puts widgets on white while its texts are pale."""
    page = lab.page
    page.evaluate(
        """() => {
            window.keys = [];
            const output = document.querySelector(".jp-OutputArea-output");
            output.addEventListener("keydown", (event) => keys.push(event.key));
            Object.assign(output.style, {background: "#ffffff", color: "#cccccc"});
        }"""
    )
    page.get_by_label("op", exact=True).fill("write")
    page.keyboard.press("Enter")
    found(page, "2 calls are shown")
    assert page.evaluate("() => keys") == []
    for text in (page.get_by_text("2 calls are shown").first, page.get_by_text("layer", exact=True).first):
        levels = text.evaluate("(element) => getComputedStyle(element).color.match(/[0-9]+/g).map(Number)")
        assert max(levels) < 100
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(f"() => ({MODE})()[1] === 1")  # Jupyter runs the cell
