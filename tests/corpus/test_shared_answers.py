"""Processes of one session of tests find each other's answers, and compute what depends on written files."""

from __future__ import annotations

from . import answers
from .answers import ANSWERS, Answers

LINE = "info forty-calls --json"


def test_an_answer_is_computed_once_for_all_processes(tmp_path, monkeypatch) -> None:
    first, second = Answers(), Answers()
    first.shared = second.shared = tmp_path / "answers"
    computed = first.answer(LINE)
    assert computed.exit == 0
    assert computed.passes
    monkeypatch.setattr(answers, "executed", None)
    found = second.answer(LINE)
    assert found == computed
    assert (found.passes, found.seconds) == (computed.passes, computed.seconds)


def test_answers_about_written_files_are_not_shared(tmp_path) -> None:
    mine = Answers()
    mine.shared = tmp_path / "answers"
    assert mine.answer("export forty-calls --to csv made-forty-calls.csv").exit == 0
    assert not mine.shared.exists()


def test_answers_of_a_session_are_in_its_temporary_folder(tmp_path_factory) -> None:
    """The next session has another one, so that no answer is of other code."""
    base = tmp_path_factory.getbasetemp()
    assert ANSWERS.shared is not None
    assert ANSWERS.shared.parent in (base, base.parent)


def test_answers_are_made_by_passes(monkeypatch) -> None:
    """What is kept of a run is not read: `passes` is what a fresh answer takes."""
    monkeypatch.setenv("ENSIO_CACHE", "1")
    assert Answers().answer(LINE).passes == Answers().answer(LINE).passes != []
