"""Measure the explorer in Chromium: pages, and marks and zooms from the mouse to the pixels.

A time ends in the frame after the one in which Bokeh has painted the new image of the trace diagram. Times at
the server are those of its answers, the largest of each gesture. Zooms are made three times, each within the
one before, half a second after its pixels: calls of the zoom before are still being read.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from tabulate import tabulate

from ensembles.cli.main import main as main_of_ensio
from ensembles.viz.explorer.page import Explorer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "viz"))
from browser import FLAGS, chromium

# Runs before the page's own scripts: notes the first frame after the trace diagram was painted.
_WATCH_FIRST = """
    window.measured = {};
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.imagePainted ??= entry.renderTime || entry.startTime;
    }).observe({type: 'element', buffered: true});
    const look = () => {
        const views = window.Bokeh?.index?.query?.((view) => view.model.name === 'explorer_trace');
        const [view] = views ? [...views] : [];
        const done = view && view.root.has_finished();
        if (!done) { requestAnimationFrame(look); return; }
        requestAnimationFrame(() => { window.measured.first = performance.now(); });
        requestAnimationFrame(rest);
    };
    const rest = () => {
        const views = [...Bokeh.index.query((each) => each.model.name === 'slowest')];
        if (views.some((view) => view.root.has_finished())) {
            requestAnimationFrame(() => { window.measured.all = performance.now(); });
        } else requestAnimationFrame(rest);
    };
    requestAnimationFrame(look);
"""

# From the release of the mouse to the data, the paint, and the frame after it. `which` is the image: of
# all calls (a zoom) or of the marked ones.
_WATCH = """(which) => {
    const [view] = Bokeh.index.query((each) => each.model.name === 'explorer_trace');
    const source = view.model.renderers[which].data_source;
    const times = window.measured = {};
    const span = view.model.x_range.end - view.model.x_range.start;
    // The calls of the zoom before come as a fine image of a window twice as long as it was.
    const isOfBefore = () => which === 0 && source.data.dw[0] > 1.5 * span
        && source.data.image[0].shape[1] > 300;
    const began = () => { times.began = performance.now(); };
    document.addEventListener('mouseup', began, {capture: true, once: true});
    window.unwatch?.();
    const paint = view.paint;
    const changed = () => {
        if (times.began !== undefined && !isOfBefore()) times.data ??= performance.now();
    };
    source.properties.data.change.connect(changed);
    view.paint = function (...rest) {
        const result = paint.apply(this, rest);
        if (times.data !== undefined && times.frame === undefined && !times.asked) {
            times.asked = true;
            requestAnimationFrame(() => { times.frame = performance.now(); });
        }
        return result;
    };
    window.unwatch = () => { source.properties.data.change.disconnect(changed); delete view.paint; };
}"""

_BETWEEN_S = 3
"""Time between two pages. A server that is asked for nothing for two seconds makes the next one ahead."""

_AT = """([x, y]) => {
    const [view] = Bokeh.index.query((each) => each.model.name === 'explorer_trace');
    const box = view.el.getBoundingClientRect(), frame = view.frame.bbox;
    return [box.left + frame.left + x * frame.width, box.top + frame.top + y * frame.height];
}"""

_ACTIVATE = """(type) => {
    const [view] = Bokeh.index.query((each) => each.model.name === 'explorer_trace');
    view.model.toolbar.tools.find((tool) => tool.type === type).active = true;
}"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--times", type=int, default=10, help="of each (default: %(default)s)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", metavar="TIMES", help="serve, and write the times of answers into a file")
    args = parser.parse_args()
    if args.serve:
        serve(args.run, args.serve)
        return
    with tempfile.TemporaryDirectory(prefix="ensio-pixels-") as folder:
        answers = Path(folder, "answers")
        answers.touch()
        command = [sys.executable, __file__, args.run, "--serve", str(answers)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        link = server.stdout.readline().strip()
        try:
            found = measured(link, args.times, answers)
        finally:
            server.terminate()
            server.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if args.json:
        print(json.dumps(found | {"server_cpu_s": used.ru_utime + used.ru_stime}))
        return
    rows = [
        [what, len(ms), *(f"{end:.0f}" for end in (min(ms), statistics.median(ms), max(ms)))]
        for what, ms in found.items()
        if ms
    ]
    print(tabulate(rows, ["ms", "n", "least", "median", "most"]))


def serve(run: str, answers: str) -> None:
    """Serve a run as `ensio serve` does, and write the time of each answer into a file."""
    look = Explorer.look

    def timed(self: Explorer, *args: Any, **named: Any) -> None:
        began = time.perf_counter()
        look(self, *args, **named)
        with open(answers, "a", encoding="utf-8") as file:
            file.write(f"{(time.perf_counter() - began) * 1e3}\n")

    Explorer.look = timed  # type: ignore[method-assign]
    sys.exit(main_of_ensio(["serve", run]))


def measured(link: str, times: int, answers: Path) -> dict[str, list[float]]:
    """Measure all, in ms."""
    found: dict[str, list[float]] = {}
    draw = random.Random(1)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for _ in range(times):
            page = _opened(browser, link)
            found.setdefault("first image", []).append(page.evaluate("() => window.imagePainted ?? NaN"))
            found.setdefault("trace diagram", []).append(page.evaluate("() => window.measured.first"))
            page.wait_for_function("() => window.measured.all", timeout=120_000)
            found.setdefault("whole page", []).append(page.evaluate("() => window.measured.all"))
            page.close()
            time.sleep(_BETWEEN_S)
        page = _opened(browser, link)
        page.wait_for_timeout(5000)
        for tool, which, gestures in (
            ("BoxSelectTool", 1, ["rectangle"]),
            ("BoxZoomTool", 0, ["zoom", "zoom in it", "zoom in that"]),
        ):
            page.evaluate(_ACTIVATE, tool)
            for _ in range(times):
                for what in gestures:
                    left, top = draw.uniform(0.1, 0.6), draw.uniform(0.1, 0.6)
                    wide, high = draw.uniform(0.1, 0.3), draw.uniform(0.1, 0.3)
                    known = len(answers.read_text("utf-8").split())
                    got = _dragged(page, which, (left, top), (left + wide, top + high))
                    of_server = [float(ms) for ms in answers.read_text("utf-8").split()[known:]]
                    found.setdefault(f"{what}, server", []).append(max(of_server, default=0.0))
                    for part in ("data", "frame"):
                        found.setdefault(f"{what}, {part}", []).append(got[part] - got["began"])
                    page.wait_for_timeout(500)
                if which == 0:
                    page.get_by_role("button", name="Whole run").click()
                    page.wait_for_function("() => !location.search.includes('shown-time')")
                    page.evaluate("() => window.scrollTo(0, 0)")  # the button was below
                    page.wait_for_timeout(1000)
        browser.close()
    return found


def _opened(browser: Any, link: str) -> Any:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.add_init_script(_WATCH_FIRST)
    page.goto(link)
    page.wait_for_function("() => window.measured && window.measured.first", timeout=120_000)
    return page


def _dragged(page: Any, which: int, start: tuple[float, float], end: tuple[float, float]) -> dict[str, float]:
    from_x, from_y = page.evaluate(_AT, list(start))
    to_x, to_y = page.evaluate(_AT, list(end))
    page.mouse.move(from_x, from_y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=5)
    page.evaluate(_WATCH, which)
    page.mouse.up()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        got: dict[str, float] = page.evaluate("() => window.measured")
        if got.get("frame") is not None:
            return got
        page.wait_for_timeout(20)
    raise RuntimeError("no new image came within a minute")


if __name__ == "__main__":
    main()
