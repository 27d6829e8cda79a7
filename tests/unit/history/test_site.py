"""The history as static pages and as metrics: what they hold, and that texts of runs are escaped."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from night import simulated

from ensembles.history.context import openmetrics
from ensembles.history.store import History

sys.path.append(str(Path(__file__).parents[1] / "viz"))

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """An experiment whose second mode moves with its 26th run, and one with a hostile name."""
    rng = np.random.default_rng(3)
    found = History(str(tmp_path_factory.mktemp("site") / "runs.db"), make=True)
    for number in range(30):
        place = 1.5 if number >= 25 else 1.0
        record = simulated(rng, float(np.exp(0.05 * rng.standard_normal())), place, number=number)
        found.add(record, "nightly", {"fs": HOSTILE})
    found.add(simulated(rng, 1.0, number=99), HOSTILE)
    return found


@pytest.fixture(scope="module")
def site(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ensembles.viz.history.pages import write_site

    folder = tmp_path_factory.mktemp("pages") / "site"
    written = write_site(history, str(folder))
    assert [Path(path).name for path in written] == ["index.html", "experiment-1.html", "experiment-2.html"]
    return folder


def test_metrics_are_whole_and_escaped(history: History, tmp_path: Path) -> None:
    text = openmetrics(history)
    assert text.endswith("# EOF\n")
    assert 'ensio_verdict{experiment="nightly",verdict="regression"} 1.0' in text
    assert 'ensio_verdict{experiment="nightly",verdict="ok"} 0.0' in text
    assert 'ensio_runs{experiment="nightly"} 30.0' in text
    assert r'experiment="<img src=x onerror=\"alert(1)\">"' in text
    names = re.findall(r"^# TYPE (\S+)", text, re.M)
    assert len(names) == len(set(names))
    if promtool := shutil.which("promtool"):
        # promtool reads the older text format, in which comments are free.
        plain = re.sub(r"^# (UNIT .*|EOF)\n", "", text, flags=re.M)
        done = subprocess.run(
            [promtool, "check", "metrics"], input=plain, capture_output=True, text=True, check=False
        )
        assert "error while linting" not in done.stderr, done.stderr
        assert done.returncode in (0, 3), done.stderr


def test_pages_name_what_changed_and_escape_texts(site: Path) -> None:
    index = (site / "index.html").read_text()
    assert '<span class="verdict regression">regression</span>' in index
    assert '<span class="verdict too-few-runs">too-few-runs</span>' in index
    assert "<polyline points=" in index
    page = (site / "experiment-2.html").read_text()
    assert "since run 26" in page
    for path in site.glob("*.html"):
        assert HOSTILE not in path.read_text(), path
        assert not re.search(r'(src|href)="(https?:)?//', path.read_text())


def test_lines_are_durations_and_marks_are_of_their_kind(history: History) -> None:
    from bokeh.models.annotations import Span

    from ensembles.viz.history.pages import checked, experiment_data, pictures

    data = experiment_data(history, checked(history)["nightly"])
    writes = next(kind for kind in data.kinds if kind.op == "write")
    lines = {line.name: line.value_s for line in writes.lines}
    assert np.allclose(lines["mode 1"], 1e-3, rtol=0.3)
    assert np.allclose(lines["mode 2"][:25], 8e-3, rtol=0.3)
    assert np.allclose(lines["mode 2"][25:], 12e-3, rtol=0.3)
    drawn = {figure.name: figure for figure in pictures(data)}
    # The change is of the writes: it begins with the 26th run. Its rate is of all calls, but not of syncs.
    assert {span.location for span in drawn["lines 1"].select({"type": Span})} == {24.5}
    assert not list(drawn["lines 2"].select({"type": Span}))
    heat = drawn["heat 1"].select_one({"name": "heat"}).glyph
    assert heat.y < 1e-3 < 8e-3 < heat.y + heat.dh


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None,
    reason="playwright or Pillow is not installed: the pages are not tried in a browser",
)
def test_a_click_on_a_run_shows_its_distribution(site: Path) -> None:
    from browser import browser, chromium

    if chromium() is None:
        pytest.skip("no Chromium on PATH: the pages are not tried in a browser")
    with browser() as open_page:
        page = open_page(site / "experiment-2.html")
        assert page.property_of("distribution 1 text", "model.text").startswith("run 30 of")
        y = page.property_of("heat 1", "(model.y_range.start + model.y_range.end) / 2")
        left, top = page.position("heat 1", 3, y)
        page.page.mouse.click(left, top)
        page.wait_until("distribution 1 text", 'model.text.startsWith("run 4 of")')
        said = page.page.locator("text=onerror").first
        assert HOSTILE in said.inner_text()
        assert page.page.locator("img").count() == 0
        assert page.property_of("heat 1", "model.left[0].ticker.ticks.length") >= 4
        colours = (
            "[model.background_fill_color, getComputedStyle(document.body.parentElement).backgroundColor]"
        )
        assert page.property_of("heat 1", colours) == ["#ffffff", "rgb(244, 245, 247)"]
        page.page.emulate_media(color_scheme="dark")
        page.wait_until("heat 1", 'model.background_fill_color === "#1d1d21"')
        assert page.property_of("heat 1", colours)[1] == "rgb(19, 19, 22)"
        assert page.problems == []
