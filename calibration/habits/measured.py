"""What habits cost, measured in alternated rounds, and how the answers of `diagnose` compare."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from calibration.evaluate.scorer import SMALL, Judged
from calibration.habits.execution import Answer, Machine
from calibration.habits.habit import Planted
from ensembles.model.units import seconds_text

SIGNED_SHARE = 0.8
"""Share of the rounds in which a habit has to cost time; else noise explains it."""


@dataclass(frozen=True)
class Measured:
    """Rounds of one planted run, each with the habit and without."""

    planted: Planted
    # habit, twin: One for each round
    habit: list[Answer]
    twin: list[Answer]

    @cached_property
    def lost_s(self) -> np.ndarray:
        """Difference of the spans of each round."""
        return np.array([a.span_s - b.span_s for a, b in zip(self.habit, self.twin, strict=True)])

    @property
    def run_s(self) -> float:
        """Median length of the runs with the habit."""
        return float(np.median([answer.run_s for answer in self.habit]))

    @property
    def cost_s(self) -> float:
        """Median difference; 0: noise explains it, or the habit costs nothing."""
        cost = float(np.median(self.lost_s))
        return cost if np.mean(self.lost_s > 0) >= SIGNED_SHARE else min(cost, 0.0)

    def judged(self) -> tuple[Judged, Judged]:
        """Return the run with the habit and the one without, as they are scored: those of median span."""
        cause, costs = self.planted.habit.cause, self.cost_s >= SMALL * self.run_s
        causes = [{"id": cause, "alone_s": self.cost_s, "where": {}, "left_s": {}}] if cause and costs else []
        harmless = {} if costs or not cause else {cause: self.cost_s}
        return _judged(_middle(self.habit), causes, harmless), _judged(_middle(self.twin), [], {})

    def records(self) -> list[tuple[Path, Judged]]:
        """Return the records of `judged`."""
        middle = (_middle(answers).record for answers in (self.habit, self.twin))
        return list(zip(middle, self.judged(), strict=True))

    def row(self) -> tuple[str, ...]:
        """Return a row of the table of runs."""
        answer, cause = _middle(self.habit), self.planted.habit.cause
        mine = [finding for finding in answer.said["findings"] if finding["id"] == cause]
        above = [finding for finding in answer.said["findings"] if finding["severity"] != "note"]
        first = f"{above[0]['id']}, {above[0]['severity']}" if above else "none"
        gains = mine[0]["gain_s"] if mine and mine[0]["gain_s"] else None
        refused = any(entry["id"] == cause for entry in answer.said["not_examined"])
        quiet = [
            finding["id"] for finding in _middle(self.twin).said["findings"] if finding["severity"] != "note"
        ]
        return (
            str(self.planted),
            f"{seconds_text(max(self.cost_s, 0.0))} of {seconds_text(self.run_s)}",
            first if not mine or above[:1] == mine[:1] else f"{first}; {cause}, {mine[0]['severity']}",
            " to ".join(map(seconds_text, gains)) if gains else "refused" if refused else "",
            "" if gains is None else "yes" if gains[0] <= self.cost_s <= gains[1] else "no",
            ", ".join(quiet),
        )


HEADERS = ("habit", "measured cost", "finding", "predicted gain", "holds", "without the habit")


def _middle(answers: list[Answer]) -> Answer:
    """Return the answer of the run with the median span."""
    return sorted(answers, key=lambda answer: answer.span_s)[len(answers) // 2]


def _judged(answer: Answer, causes: list[dict[str, object]], harmless: dict[str, float]) -> Judged:
    truth = {"span_s": answer.run_s, "causes": causes, "harmless": harmless}
    return Judged(truth, answer.said, answer.seconds)


def measure(machine: Machine, planted: Planted, rounds: int) -> Measured:
    """Run a program in alternated rounds with its habit and without, beginning with either in turn."""
    answers: dict[bool, list[Answer]] = {True: [], False: []}
    for number in range(rounds):
        for with_habit in (True, False) if number % 2 == 0 else (False, True):
            answers[with_habit].append(machine.run(planted, with_habit))
    for each in answers.values():
        for answer in each:
            if answer is not _middle(each):
                shutil.rmtree(answer.record)
    return Measured(planted, answers[True], answers[False])
