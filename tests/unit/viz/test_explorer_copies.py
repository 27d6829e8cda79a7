"""Copied commands and Python, run as a reader would, select what the page shows; links restore views."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from made_runs import run_of

from ensembles.cli.main import main

if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("PIL") is None:
    pytest.skip("playwright or Pillow is not installed: the explorer is not tried", allow_module_level=True)

from browser import chromium, new_context
from explorer_page import (
    CHOSEN,
    WINDOW,
    begin,
    choose,
    drag,
    fill,
    found,
    serving,
    settled,
    wait_for_pictures,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH: the explorer is not tried"),
]

PATH = "/scratch/a file's name.out"
TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
    [("open", 0.0, 0.02, 0), ("pwrite", 0.3, 0.1, 1 << 20), ("pread", 0.55, 0.4, 1 << 19)],
]

VIEWS = {
    "all": lambda page: None,
    "a peak": lambda page: drag(page, "explorer_histogram", (0.3, 1.0), (0.9, 1.5)),
    "filters and a rectangle": lambda page: [
        fill(page, "op", "write,read"),
        fill(page, "size", "1MiB..4MiB"),
        drag(page, "explorer_trace", (0.2, -0.4), (0.9, 1.4)),
    ],
    "a phase": lambda page: choose(page, "phases", 0),
    "a call index": lambda page: choose(page, "ordinals", 0),
    "a rank": lambda page: choose(page, "by_rank", 0),
    "a zoom": lambda page: choose(page, "slowest", 0),
}
"""What a reader does."""

SINGLE = ("all", "a phase", "a rank")
"""Views of which other views have all: of these, ``./dev test-long`` copies."""


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    run = run_of(tmp_path_factory.mktemp("copies") / "a run's folder", TASKS, path=PATH)
    with serving([run.path]) as printed:
        yield printed


@pytest.fixture(scope="module")
def context():
    with new_context(viewport=WINDOW) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield context


def opened(context, link: str):
    page = context.new_page()
    page.goto(link)
    wait_for_pictures(page)
    return page


@pytest.fixture(scope="module")
def page(context, link: str):
    """A page for all views."""
    return opened(context, link)


def copied(page, button: str) -> str:
    page.evaluate("() => navigator.clipboard.writeText('')")
    page.get_by_role("button", name=button).click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
    return page.evaluate("() => navigator.clipboard.readText()")


def printed(action: Callable[[], object]) -> str:
    """What an action prints; a command must succeed."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        assert not action()
    return stream.getvalue()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in SINGLE else ()) for name in VIEWS]
)
def test_what_is_copied_selects_the_calls_of_the_page_and_the_link_restores_them(
    context, page, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begin(page, "8 calls")
    VIEWS[name](page)
    if name != "all":
        page.wait_for_function(f"() => {CHOSEN}")
    state = settled(page)
    count = int(re.search(r"([\d,]+) calls? (?:is|are) ", state["found"])[1])
    assert 0 < count < 8 or name in ("all", "a zoom", "a phase")

    command = copied(page, "Copy as command")
    assert command.startswith("ensio events ")
    words = shlex.split(command)
    assert len(printed(lambda: main(words[1:])).splitlines()) == 1 + count  # CSV, which has all calls
    listed = printed(lambda: main([*words[1:], "--format", "jsonl"])).splitlines()
    assert len(listed) == count

    program = copied(page, "Copy as Python")
    tell = "print(list(zip(calls.rank.tolist(), calls.start.tolist())))"
    told = printed(lambda: exec(f"{program}\n{tell}", {"__name__": "__main__"}))
    assert eval(told) == [(row["rank"], row["start"]) for row in map(json.loads, listed)]

    # The address of the page is the link, in the browser that has opened the one with the token.
    again = opened(context, page.evaluate("() => location.href"))
    restored = settled(again)
    assert restored.pop("axes") == pytest.approx(state.pop("axes"))
    assert restored == state
    again.close()


def test_the_legend_of_the_rates_answers_to_the_keyboard(context, link: str) -> None:
    page = opened(context, link)
    found(page, "8 calls are shown")
    visible = """() => {
        const [rates] = Bokeh.index.query((view) => view.model.name === 'explorer_rates');
        return rates.model.renderers.filter((each) => each.visible).length;
    }"""
    whole = page.evaluate(visible)
    page.keyboard.press("Tab")
    focused = page.evaluate("() => document.activeElement.textContent")
    assert re.fullmatch(r"(read|write): .*: hide", focused)
    page.keyboard.press("Enter")
    assert page.evaluate(visible) < whole
    page.keyboard.press(" ")
    assert page.evaluate(visible) == whole
    # Of new pictures there are new buttons.
    fill(page, "op", "write")
    found(page, "3 calls are shown")
    settled(page)
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.querySelectorAll('.legend-keys button').length") == 1
    page.close()
