"""A run in progress: the explorer holds exactly the calls that the program has made so far."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import subprocess
import sys

import pytest
from places import ROOT

import ensembles
from ensembles.viz.explorer.server import Followed, wait_for_run
from ensembles.viz.explorer.view import View


@pytest.fixture
def program(recorder, tmp_path):
    """A running program, and a function that lets it make a number of writes."""
    built = recorder.build("on_demand")
    process = subprocess.Popen(
        [built, tmp_path / "out"],
        env=recorder.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )

    def write(count: int) -> None:
        process.stdin.write(f"{count}\n")
        assert process.stdout.readline() == "done\n"

    with process:
        yield process, write
        process.kill()


def _count(events) -> int:
    names = [call.name for call in events.calls]
    return int((events.call == names.index("pwrite")).sum()) if "pwrite" in names else 0


def test_new_calls_are_held_as_they_are_made(program, recorder) -> None:
    _, write = program
    write(10)
    followed = wait_for_run(str(recorder.run), lambda sentence: None)
    made = 10
    for count in (1, 7, 20_000, 0, 3):
        write(count)
        made += count
        followed.refresh()
        assert _count(followed.events) == made
        assert "in progress" in followed.notes[0]
        assert not followed.progress.has_ended
    version = followed.version
    followed.refresh()
    assert (_count(followed.events), followed.version) == (made, version)


def test_calls_of_a_killed_program_stay(program, recorder) -> None:
    process, write = program
    write(500)
    followed = wait_for_run(str(recorder.run), lambda sentence: None)
    write(250)
    process.send_signal(signal.SIGKILL)
    process.wait()
    followed.refresh()
    assert _count(followed.events) == 750
    followed.refresh()
    made = len(followed.events)
    ended = f"The run has ended: 1 task made {made:,} calls, and 1 process did not end in order."
    assert followed.notes == [ended]
    whole = ensembles.open(recorder.run).select(call="pwrite")
    mine = followed.events[
        [call.name for call in followed.events.calls].index("pwrite") == followed.events.call
    ]
    assert mine.offset.tolist() == whole.offset.tolist()
    assert mine.moved.tolist() == whole.moved.tolist()


def test_an_ended_program_is_read_as_any_run(program, recorder) -> None:
    process, write = program
    write(100)
    followed = wait_for_run(str(recorder.run), lambda sentence: None)
    write(100)
    process.stdin.close()
    assert process.wait() == 0
    assert followed.refresh()
    whole = ensembles.open(recorder.run).events
    for name in ("rank", "start", "duration", "offset", "moved"):
        assert getattr(followed.events, name).tolist() == getattr(whole, name).tolist()
    assert followed.notes == [f"The run has ended: 1 task made {len(whole):,} calls."]
    followed._causes_in_background.wait()
    assert followed.structure(View()).phases
    phase = int(ensembles.open(recorder.run).select(op="write").phase.max())
    chosen = followed.marked(View(marks={"phase": str(phase), "op": "write"}))
    assert len(chosen) == len(ensembles.open(recorder.run).select(phase=phase, op="write")) > 0


def test_memory_is_bounded_and_the_latest_calls_are_held(program, recorder) -> None:
    _, write = program
    write(100)
    followed = Followed(str(recorder.run), most_events=1000)
    for _ in range(5):
        write(700)
        followed.refresh()
        assert len(followed.events) <= 1000
    everything = ensembles.open(recorder.run).events
    assert followed.progress.left_out + len(followed.events) == len(everything)
    assert followed.events.start.tolist() == everything.start[-len(followed.events) :].tolist()
    assert f"{followed.progress.left_out:,} calls" in followed.notes[1]


def test_a_new_process_is_followed_too(program, recorder) -> None:
    process, write = program
    write(5)
    followed = wait_for_run(str(recorder.run), lambda sentence: None)
    process.stdin.write("child 40\n")
    assert process.stdout.readline() == "done\n"
    write(2)
    followed.refresh()
    assert _count(followed.events) == 47
    whole = ensembles.open(recorder.run).events
    assert followed.events.rank.tolist() == whole.rank.tolist()
    assert followed.events.offset.tolist() == whole.offset.tolist()


@pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None or shutil.which("chromium") is None,
    reason="playwright or Chromium is not there: the page of a run in progress is not tried",
)
def test_the_page_waits_for_the_run_and_shows_new_calls(recorder, tmp_path) -> None:
    sys.path.append(str(ROOT / "tests" / "unit" / "viz"))
    from browser import new_context

    command = [sys.executable, "-m", "ensembles.cli.main", "serve", "--follow", str(recorder.run)]
    built = recorder.build("on_demand")
    with (
        _started(command, stderr=subprocess.PIPE) as server,
        new_context() as context,
        contextlib.ExitStack() as later,
    ):
        link = server.stdout.readline().strip()  # which is there before the run
        page = context.new_page()
        problems: list[str] = []
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(link + "&call=pwrite")
        assert f"No process has begun to record into {recorder.run}." in page.inner_text("p")
        assert page.request.get(link[:-1]).status == 403
        process = later.enter_context(
            _started(
                [built, tmp_path / "out"],
                env=recorder.environment(ENSIO_DIR=str(recorder.run)),
                stdin=subprocess.PIPE,
            )
        )
        page.wait_for_function("() => window.Bokeh?.documents.length")
        made = 0
        for calls in (10, 1234, 5000):
            process.stdin.write(f"{calls}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
            made += calls
            page.wait_for_function(
                "(n) => Bokeh.documents[0]?.get_model_by_name('found')?.text.includes(n)",
                arg=f"{made:,} calls are shown",
            )
        process.send_signal(signal.SIGKILL)
        page.wait_for_timeout(2000)
        assert "6,244 calls are shown" in page.evaluate("Bokeh.documents[0].get_model_by_name('found').text")
        page.wait_for_function(
            """() => {
                const named = (name) => Bokeh.documents[0].get_model_by_name(name);
                const rows = Object.values(named('phases').source.data)[0];
                const ended = named('message').text.includes('The run has ended: 1 task made 6,24');
                return ended && rows?.length > 0 && !named('examine').visible;
            }""",
        )
        assert problems == []


@contextlib.contextmanager
def _started(command, **options):
    """A program that is killed at the end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
