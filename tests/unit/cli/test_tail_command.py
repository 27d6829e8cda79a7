"""``ensio tail`` as a person starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands_here import executed as ensio
from synthetic_runs import synthetic_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    synthetic_run(path, 8, 400, seed=3)
    return path


def test_json_tells_the_slowest_of_n_and_equation_1(folder: Path) -> None:
    done = ensio("tail", folder, "--tasks", "64", "--op", "write", "--json")
    assert done.returncode == 0, done.stderr
    assert "chosen by their durations" not in done.stderr
    cut = ensio("tail", folder, "--tasks", "64", "--op", "write", "--where", "duration=1us..")
    assert "the slowest of them is not the slowest call of a task" in cut.stderr
    found = json.loads(done.stdout)
    assert found["tasks"] == 64
    assert found["level"] == 0.9
    assert found["n"] > 0
    assert (found["refused"] is None) == (found["low_s"] is not None)
    assert found["equation1"]["low_s"] <= found["observed_max_s"] * (1 + 1e-9)


def test_equation_1_is_a_lower_bound_where_the_calls_do_not_reach(folder: Path) -> None:
    done = ensio("tail", folder, "--tasks", "102400", "--op", "write")
    assert done.returncode == 0, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("Equation 1  "))
    assert row.count("≥ ") == 3
    assert "do not reach to the upper end of the slowest of 102,400." in done.stdout
    told = json.loads(ensio("tail", folder, "--tasks", "102400", "--op", "write", "--json").stdout)
    assert told["equation1"]["high_s"] is None


def test_text_names_what_the_answer_stands_on_or_why_there_is_none(folder: Path) -> None:
    done = ensio("tail", folder, "--tasks", "16")
    assert done.returncode == 0, done.stderr
    assert "Slowest of 16 calls, one per task" in done.stdout
    assert "Method: " in done.stdout or "No prediction: " in done.stdout
    assert "Equation 1" in done.stdout
    alone = ensio("tail", folder, "--tasks", "1").stdout
    assert alone.startswith("Any call of a task; ")
    assert "There is one task: --tasks N predicts the slowest call of N." in alone


def test_the_number_of_tasks_is_that_of_the_run_unless_told(folder: Path) -> None:
    assert json.loads(ensio("tail", folder, "--json").stdout)["tasks"] == 8


def test_backtest_counts_trials_or_says_why_there_are_none(folder: Path) -> None:
    done = ensio("tail", folder, "--tasks", "8", "--backtest", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) >= {"coverage", "level", "trials", "tasks", "refused"}
    assert found["trials"] or found["kinds"][0]["reason"]
    assert "predicted" in ensio("tail", folder, "--tasks", "8", "--backtest").stdout


@pytest.mark.parametrize("wrong", [("--tasks", "0"), ("--level", "90"), ("--tasks", "many")])
def test_senseless_questions_are_refused_in_one_sentence(folder: Path, wrong: tuple[str, str]) -> None:
    done = ensio("tail", folder, *wrong)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
