"""How far long work is: what a listener hears adds up to the whole work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

from ensembles.cli.main import main
from ensembles.passes.progress import listen

TASKS, EVENTS = 4, 5000


class Heard:
    """Keeps what a listener hears: each work with the number of its steps."""

    def __init__(self) -> None:
        self.works: list[list[object]] = []
        self.steps: list[int] = []
        self.ends = 0

    def begin(self, work: str, path: str, total: int, unit: str) -> None:
        self.works.append([work, Path(path).name, total, unit])
        self.steps.append(0)

    def advance(self, steps: int) -> None:
        self.steps[-1] += steps

    def clear(self) -> None:
        pass

    def end(self) -> None:
        self.ends += 1


@pytest.fixture
def heard() -> Iterator[Heard]:
    listener = Heard()
    listen(listener)
    yield listener
    listen(None)
    assert listener.ends == len(listener.works)


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("progress") / "run"
    synthetic_run(path, TASKS, EVENTS)
    return path


def works_of(heard: Heard, *arguments: object) -> list[tuple[list[object], int]]:
    """What a command tells of its works, and the steps that were told of each."""
    assert main([str(argument) for argument in arguments]) == 0
    return list(zip(heard.works, heard.steps, strict=True))


def assert_tells_of_all(told: tuple[list[object], int], work: str, name: str) -> None:
    """The steps are all events; the total may be more, since it is known before they are read."""
    (found, path, total, unit), steps = told
    assert (found, path, unit, steps) == (work, name, "events", TASKS * EVENTS)
    assert isinstance(total, int)
    assert total >= steps


def test_a_pass_tells_of_every_event(run_path: Path, heard: Heard) -> None:
    for told in works_of(heard, "info", run_path):
        assert_tells_of_all(told, "reading", "run")


def test_a_pass_of_processes_tells_of_every_part(run_path: Path, heard: Heard) -> None:
    (told, *_) = works_of(heard, "rate", run_path, "--workers", 2)
    work, parts = told
    assert work == ["reading", "run", parts, "parts"]
    assert parts > 1


def test_written_and_exported_runs_tell_of_every_event(run_path: Path, tmp_path: Path, heard: Heard) -> None:
    collected, *_ = works_of(heard, "collect", run_path, "-o", tmp_path / "trace.h5")
    assert_tells_of_all(collected, "writing", "trace.h5")
    for way in ("csv", "otf2"):
        *_, exported = works_of(heard, "export", run_path, "--to", way, tmp_path / way)
        assert_tells_of_all(exported, "reading", "run")


def test_a_simulation_tells_of_every_call_of_its_pattern(tmp_path: Path, heard: Heard) -> None:
    simulated, written, *_ = works_of(
        heard, "simulate", "ior", "--tasks", 4, "--fs", "healthy", "-o", tmp_path / "made"
    )
    work, calls = simulated
    assert work == ["simulating", "ior", calls, "calls"]
    assert calls > 0
    assert written[0][:2] == ["writing", "trace.h5"]
