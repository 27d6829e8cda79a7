"""``ensio serve HISTORY``: tokens, filters, links, bad requests; and the pages in a real browser."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np
import pytest
from bokeh.models import CustomJSTickFormatter, Legend
from night import night, night_record, simulated

from ensembles.history.record import RunRecord
from ensembles.history.store import History
from ensembles.viz.common.figures import titles_of
from ensembles.viz.history.pages import experiment

sys.path.append(str(Path(__file__).parents[1] / "viz"))

HOSTILE = '<img src=x onerror="window.hit=1">\udcff'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A history: a second mode that moved, a hostile name, and a run that can still be read."""
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(3)
    place = str(folder / "runs.db")
    history = History(place, make=True)
    for number in range(30):
        moved = 1.5 if number >= 25 else 1.0
        record = simulated(rng, float(np.exp(0.05 * rng.standard_normal())), moved, number=number)
        history.add(record, "nightly", {"fs": "new" if number >= 20 else "old"})
    history.add(simulated(rng, 1.0, number=99), HOSTILE, {"note": HOSTILE})
    history.add(RunRecord.of_run(night(folder / "night", 1)), "kept")
    return place


@contextlib.contextmanager
def serving(place: str) -> Iterator[str]:
    command = [sys.executable, "-m", "ensembles.cli.main", "serve", place]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate(timeout=600)


@pytest.fixture(scope="module")
def link(place: str) -> Iterator[str]:
    with serving(place) as printed:
        yield printed


class Browser:
    """Requests with the cookie and below the path that the link gave."""

    def __init__(self, link: str) -> None:
        self.address = urlsplit(link)
        self.cookie = self.base = ""
        _, headers, _ = self.get(f"/?{self.address.query}")
        self.cookie, self.base = headers["Set-Cookie"].partition(";")[0], headers["Location"].rstrip("/")

    def get(self, path: str, cookie: str | None = None) -> tuple[int, dict[str, str], str]:
        assert self.address.hostname is not None
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=600)
        headers = {"Cookie": self.cookie if cookie is None else cookie}
        connection.request("GET", f"{self.base}{path}", headers=headers)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        return found


@pytest.fixture(scope="module")
def browse(link: str) -> Browser:
    return Browser(link)


def test_pictures_of_an_experiment_have_units_and_say_what_lines_are(place: str) -> None:
    picture = experiment(place, "nightly")
    first = picture.children[0]
    assert first.yaxis.axis_label == "duration"
    assert isinstance(first.yaxis.formatter, CustomJSTickFormatter)  # each tick has a unit
    (legend,) = first.select({"type": Legend})
    assert legend in first.above  # at the side, it would take a third of a narrow page
    assert any(said.startswith("Red: a change begins with run 26") for said in titles_of(first))
    points = first.select({"name": "points"})[0].data_source.data
    assert points["took"][0].endswith(("µs", "ms", " s"))
    assert points["expected"][0] == "not yet known"


def test_only_the_link_opens_the_pages(browse: Browser) -> None:
    for path in ("/", "/?token=wrong", "/experiment?name=nightly", "/report?run=1", "/bokeh.js", "/other"):
        status, _, text = browse.get(path, cookie="")
        assert (status, text) == (403, "open the link that ensio serve printed: it ends in a token\n")
    status, _, text = browse.get("/", cookie=browse.cookie[:-1] + "?")
    assert status == 403
    assert "nightly" not in text


def test_experiments_have_their_verdict_and_text_is_escaped(browse: Browser) -> None:
    status, _, page = browse.get("/")
    assert status == 200
    assert '<span class="verdict regression">regression</span>' in page
    assert HOSTILE[:-1] not in page
    link = f"experiment?name={quote(HOSTILE, safe='', errors='surrogateescape').replace('%20', '+')}"
    assert link in page
    assert browse.get(f"/{link}")[0] == 200


def test_filters_choose_experiments_and_runs(browse: Browser) -> None:
    _, _, page = browse.get("/?label=fs=old")
    assert "<td>20</td>" in page  # runs
    assert "kept" not in page
    # The verdict is of all runs, so that a filter cannot change it.
    assert '<span class="verdict regression">' in page
    _, _, page = browse.get("/?status=too-few-runs")
    assert "kept" in page
    assert ">nightly<" not in page
    _, _, page = browse.get("/?status=improvement")
    assert "No experiment matches." in page
    _, _, page = browse.get("/experiment?name=nightly&label=fs=old")
    assert 'id="chosen">20<' in page


def test_a_link_shows_the_run_that_it_names(browse: Browser) -> None:
    _, _, page = browse.get("/experiment?name=nightly")
    assert 'id="chosen">30<' in page
    _, _, page = browse.get("/experiment?name=nightly&run=7")
    assert 'id="chosen">7<' in page
    assert "run 7 of 2023-11-20" in page


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/experiment?name=other", "there is no experiment other"),
        ("/experiment?name=nightly&run=999", "there is no run 999"),
        ("/experiment?name=nightly&run=x", "there is no run x"),
        ("/experiment?name=nightly&run=32", "run 32 is not of nightly"),
        ("/experiment?name=nightly&label=fs", '"fs" is not a label: write NAME=VALUE'),
        ("/experiment?name=nightly&label=fs=none", "no run of nightly has the labels fs=none"),
        ("/experiment?name=nightly&run=30&label=fs=old", "run 30 does not have the label fs=old"),
        ("/report?run=1", "the history keeps summaries only, and run 1 cannot be read any more"),
        ("/report", "there is no run"),
        ("/other", "there is no such page"),
    ],
)
def test_what_is_not_there_is_one_sentence(browse: Browser, path: str, sentence: str) -> None:
    status, headers, text = browse.get(path)
    assert status == 404
    assert text.startswith(sentence)
    assert text.count("\n") == 1
    assert headers["Content-Type"].startswith("text/plain")


def test_a_run_that_is_still_there_has_its_report(browse: Browser) -> None:
    status, _, page = browse.get("/report?run=32")
    assert status == 200
    assert "<title>I/O of" in page


def test_another_run_there_has_no_report_here(place: str, browse: Browser, tmp_path: Path) -> None:
    history = History(place)
    history.add(night_record(tmp_path / "again", 3), "replaced")  # a day before what lies there now
    (replaced,) = history.runs("replaced")
    try:
        status, _, text = browse.get(f"/report?run={replaced.id}")
    finally:
        history.remove([replaced.id])
    assert status == 404
    assert f"another run lies in {tmp_path / 'again'} now" in text


def test_runs_that_are_added_are_on_the_next_page(place: str, browse: Browser, tmp_path: Path) -> None:
    history = History(place)
    record = msgspec.structs.replace(night_record(tmp_path / "night", 2), identity="later")
    history.add(record, "added-later")
    try:
        assert "added-later" in browse.get("/")[2]
    finally:
        history.remove([run.id for run in history.runs("added-later")])
    assert "added-later" not in browse.get("/")[2]


def test_a_run_of_an_older_page(tmp_path: Path) -> None:
    from ensembles.history.check import check
    from ensembles.viz.history.pages import experiment_data

    history = History(str(tmp_path / "runs.db"), make=True)
    rng = np.random.default_rng(1)
    rows = [(simulated(rng, 1.0, number=number), "long", {}) for number in range(250)]
    history.add_many(rows)
    first = history.run(1)
    data = experiment_data(history, check(history, "long", compared=False), until=first)
    assert [run.id for run in data.runs] == [1]
    assert len(experiment_data(history, check(history, "long", compared=False)).runs) == 200


def refused(*arguments: str) -> str:
    command = [sys.executable, "-m", "ensembles.cli.main", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_what_cannot_be_served(place: str, tmp_path: Path) -> None:
    empty = str(tmp_path / "empty.db")
    History(empty, make=True)
    assert "the history holds no run" in refused(empty)
    assert "a history is served alone" in refused(place, "run")
    assert "there is no port 70000" in refused(place, "--port", "70000")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None,
    reason="playwright or Pillow is not installed: the pages are not tried in a browser",
)
def test_a_browser_follows_the_links(link: str) -> None:
    from browser import chromium, new_context

    if chromium() is None:
        pytest.skip("no Chromium on PATH: the pages are not tried in a browser")
    problems: list[str] = []
    host = urlsplit(link).netloc

    def see(url: str) -> None:
        if not url.startswith(("data:", "blob:")) and urlsplit(url).netloc != host:
            problems.append(f"request: {url}")

    with new_context(viewport={"width": 1400, "height": 1000}) as context:
        page = context.new_page()
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: see(request.url))
        page.goto(link)
        base = page.url
        assert "token" not in base
        page.get_by_role("link", name="nightly", exact=True).click()
        page.wait_for_function(
            "() => window.Bokeh && Bokeh.documents.length && Bokeh.documents.every((d) => d.is_idle)"
        )
        at = """() => {
            const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name('heat 1'));
            view.el.scrollIntoView({block: 'center'});
            const box = view.el.getBoundingClientRect();
            const middle = (view.model.y_range.start + view.model.y_range.end) / 2;
            return [box.left + view.frame.x_scale.compute(3), box.top + view.frame.y_scale.compute(middle)];
        }"""
        page.mouse.click(*page.evaluate(at))
        page.wait_for_function("() => location.search.includes('run=4')")
        assert page.locator("#chosen").inner_text() == "4"
        page.reload()
        page.wait_for_function(
            "() => window.Bokeh && Bokeh.documents.length && Bokeh.documents.every((d) => d.is_idle)"
        )
        text = page.evaluate("() => Bokeh.documents[0].get_model_by_name('distribution 1 text').text")
        assert text.startswith("run 4 of")
        page.goto(base)
        assert page.locator("img").count() == 0
        page.goto(f"{base}report?run=32")
        page.wait_for_function("() => window.Bokeh && Bokeh.documents.length > 0")
        assert page.evaluate("() => window.hit === undefined")
    assert problems == []
