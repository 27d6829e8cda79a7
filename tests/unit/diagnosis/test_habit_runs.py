"""Habits of real programs: which are planted, and what counts as their cost."""

from __future__ import annotations

import pytest

from calibration.habits.catalogue import HABITS
from calibration.habits.execution import SOURCES, Answer
from calibration.habits.habit import OWN_PROGRAMS, Planted, runs_of
from calibration.habits.measured import Measured
from ensembles.diagnosis.diagnose import RULES


def test_every_habit_has_a_program_and_a_finding_that_names_it():
    known = {rule.ID for rule in RULES}
    for habit in HABITS:
        assert habit.cause in known
        assert habit.words != habit.twin or habit.neighbour or habit.cause == "not-io"
        if habit.program in OWN_PROGRAMS:
            assert (SOURCES / f"{habit.program}.c").is_file()
        elif habit.program.endswith(".py"):
            assert (SOURCES / habit.program).is_file()


def test_there_are_sixty_runs_and_more_in_both_ways_and_with_both_libraries():
    runs = [run for run in runs_of(HABITS) if run.habit.program != "ior"]
    assert len(runs) >= 60
    assert {run.way for run in runs} == {"relinked", "preloaded"}
    assert {run.flavour for run in runs} == {"", "openmpi", "mpich"}
    assert len(set(map(str, runs))) == len(runs)


def answers(*spans_s: float) -> list[Answer]:
    said = {"findings": [], "not_examined": [], "unexplained_s": None}
    return [Answer(span_s, span_s, said, set(), 0.0) for span_s in spans_s]


@pytest.mark.parametrize(
    ("habit", "twin", "cost_s"),
    [
        ((1.0, 1.2, 1.1, 1.3, 9.0), (0.5, 0.5, 0.5, 0.5, 0.5), 0.7),
        ((1.0, 0.4, 1.1, 0.3, 1.2), (0.5, 0.5, 0.5, 0.5, 0.5), 0.0),  # in two rounds of five it is faster
        ((0.4, 0.4, 0.4, 0.4, 0.4), (0.5, 0.5, 0.5, 0.5, 0.5), -0.1),
    ],
)
def test_the_cost_is_the_median_difference_if_rounds_agree(habit, twin, cost_s):
    measured = Measured(Planted(HABITS[0], "relinked", ""), answers(*habit), answers(*twin))
    assert measured.cost_s == pytest.approx(cost_s)
    with_habit, without = measured.judged()
    assert bool(with_habit.costs) == (cost_s > 0.02 * measured.run_s)
    assert without.costs == {}
    assert with_habit.truth["span_s"] == sorted(habit)[2]
