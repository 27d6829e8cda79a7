"""Works in the background: the newest first, none beside an answer, and none is lost."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from copy import deepcopy

import pytest

from ensembles.model.events import Events
from ensembles.viz.explorer.background import Answers, Background, InTurn, Postponed, Turn

WAIT_S = 600


def failed(key, error) -> None:
    pytest.fail(f"{key}: {error}")


def test_a_newer_work_comes_before_a_pass_that_has_begun() -> None:
    background, done = Background(failed), []
    began, asked = threading.Event(), threading.Event()

    def older() -> Iterator[None]:
        began.set()
        assert asked.wait(WAIT_S)
        InTurn(background.turn()).add(Events.empty())  # raises the first time
        done.append("older")
        yield

    def newer() -> Iterator[None]:
        done.append("newer")
        yield

    background.ask("older", older)
    assert began.wait(WAIT_S)
    background.ask("newer", newer)
    asked.set()
    background.wait()
    assert done == ["newer", "older"]


def test_a_work_that_catches_it_goes_on_where_it_was() -> None:
    background, done = Background(failed), []
    began, asked = threading.Event(), threading.Event()

    def portions() -> Iterator[None]:
        for number in range(3):
            began.set()
            assert asked.wait(WAIT_S)
            while True:
                try:
                    background.turn().take()
                except Postponed:
                    yield
                else:
                    break
            done.append(number)
            yield

    def newer() -> Iterator[None]:
        done.append("newer")
        yield

    background.ask("portions", portions)
    assert began.wait(WAIT_S)
    background.ask("newer", newer)
    asked.set()
    background.wait()
    assert done == ["newer", 0, 1, 2]


def test_works_rest_while_a_page_is_answered_and_while_others_come_first() -> None:
    answers = Answers()
    first = Background(failed, answers=answers)
    second = Background(failed, answers=answers, before=first)
    done: list[str] = []

    def work(background: Background, name: str) -> Iterator[None]:
        background.turn().take()
        done.append(name)
        yield

    with answers.answering(0.2):
        second.ask("second", lambda: work(second, "second"))
        first.ask("first", lambda: work(first, "first"))
        time.sleep(0.1)
        assert done == []
    ended = time.monotonic()
    first.wait()
    second.wait()
    assert time.monotonic() - ended >= 0.15
    assert done == ["first", "second"]


def test_passes_of_other_processes_and_without_a_thread_do_not_wait() -> None:
    background = Background(failed, is_threaded=False)
    with Answers().answering(0.0):
        background.turn().take()
    turn = Background(failed).turn()
    assert deepcopy(turn) is turn
    assert isinstance(pickle.loads(pickle.dumps(InTurn(turn)))._turn, Turn)
    pickle.loads(pickle.dumps(turn)).take()
    summary = InTurn(turn)
    summary.merge(InTurn(turn))
