"""A pattern with values of its parameters: the steps and the calls of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.workloads.patterns.expressions import Expression, Number
from ensembles.workloads.patterns.pattern import PHASE, FileNames, Operation, Pattern, Phase, evaluate_count

MOST_CALLS_OF_A_TASK = 1 << 22


@dataclass(frozen=True)
class Step:
    """The calls between two barriers: a repetition of a phase, or the whole phase (repetition 0)."""

    phase: str
    repetition: int


class Expansion:
    """A pattern with the values of its parameters, which can be expanded for any span of tasks.

    `operations`: of the active phases. `calls`: names, of which rows contain the indices. `step_phase`: index
    of the phase of each step.
    """

    def __init__(self, pattern: Pattern, parameters: Mapping[str, int]) -> None:
        self.pattern = pattern
        self.parameters = parameters
        self.tasks = parameters["tasks"]
        self.files = FileNames(pattern, parameters)
        self.phases = [phase for phase in pattern.phases if phase.when.evaluate_whole(parameters)]
        self.operations = tuple(operation for phase in self.phases for operation in phase.operations)
        self.calls = tuple(dict.fromkeys(operation.call for operation in self.operations))
        self._call_numbers = {name: number for number, name in enumerate(self.calls)}
        self._operation_numbers = {id(operation): n for n, operation in enumerate(self.operations)}
        self._repetitions = self._counted_repetitions()
        steps = [
            (number, Step(phase.name, repetition))
            for number, phase in enumerate(self.phases)
            for repetition in range(1 if phase.barrier == PHASE else self._repetitions[number])
        ]
        self.steps = tuple(step for _, step in steps)
        self.step_phase = np.array([number for number, _ in steps], dtype=np.int64)

    def _counted_repetitions(self) -> list[int]:
        """Return the number of repetitions of each phase; reject too many calls of a task."""
        counted, calls = [], 0
        for phase in self.phases:
            repetitions = evaluate_count(phase.repetitions, self.parameters, "repetitions")
            calls += repetitions
            self._refuse_too_many(phase.repetitions.where, calls)
            for operation in phase.operations:
                names = {**self.parameters, "repetition": 0}
                calls += repetitions * evaluate_count(operation.times, names, "times")
                self._refuse_too_many(operation.where, calls)
            counted.append(repetitions)
        return counted

    @staticmethod
    def _refuse_too_many(where: str, calls: int) -> None:
        if calls > MOST_CALLS_OF_A_TASK:
            raise EnsioError(f"{where}: a task would make more than {MOST_CALLS_OF_A_TASK:,} calls")

    def passes(self) -> Iterator[tuple[int, Phase, int, dict[str, Number]]]:
        """Yield step, phase, repetition and values of the names for each repetition of each phase."""
        step = -1
        for phase, repetitions in zip(self.phases, self._repetitions, strict=True):
            for repetition in range(repetitions):
                if repetition == 0 or phase.barrier != PHASE:
                    step += 1
                yield step, phase, repetition, {**self.parameters, "repetition": repetition}

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield spans of tasks (first, end) with a limited number of calls."""
        for first in range(0, self.tasks, ROWS_AT_ONCE):
            end = min(first + ROWS_AT_ONCE, self.tasks)
            before = np.cumsum(self.most_calls(first, end)) // ROWS_AT_ONCE
            cuts = np.flatnonzero(np.diff(before)) + 1 + first
            edges = [first, *cuts.tolist(), end]
            yield from pairwise(edges)

    def most_calls(self, first: int, end: int) -> np.ndarray:
        """Return an upper bound of the calls of each task, without received ones: shape (end - first,)."""
        most = np.zeros(end - first, dtype=np.int64)
        ranks = np.arange(first, end, dtype=np.int64)
        for phase, repetitions in zip(self.phases, self._repetitions, strict=True):
            for operation in phase.operations:
                used = operation.when.names | operation.times.names
                for_task, _ = operation.when.parted("call")
                for repetition in range(repetitions) if "repetition" in used else (0,):
                    names: dict[str, Number] = {**self.parameters, "repetition": repetition}
                    times = evaluate_count(operation.times, names, "times")
                    often = times * (1 if "repetition" in used else repetitions)
                    makes = holds(for_task, {**names, "rank": ranks}, len(ranks)) if for_task else True
                    most += often * np.asarray(makes, dtype=np.int64)
        return most

    def evaluate_numbers(self, operation: Operation) -> tuple[int, int]:
        """Return the index of an operation and that of its call."""
        return self._operation_numbers[id(operation)], self._call_numbers[operation.call]


def holds(condition: Expression, names: Mapping[str, Number], count: int) -> np.ndarray:
    """Return where a condition is not 0, bool, shape (count,)."""
    return np.broadcast_to(evaluated(condition, names) != 0, count)


def evaluated(expression: Expression, names: Mapping[str, Number]) -> np.ndarray:
    """Compute an expression as an array."""
    return np.asarray(expression.evaluate(names), dtype=np.int64)
