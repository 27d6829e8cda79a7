"""A pattern with numbers for its parameters: what its tasks do, in which steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.expressions import Number
from ensembles.workloads.patterns.pattern import PHASE, FileNames, Operation, Pattern, Phase, evaluate_count
from ensembles.workloads.patterns.task_block import Block, BlockState, holds

MOST_OPERATIONS = 1 << 28
MOST_CALLS_OF_A_TASK = 1 << 22

_TASKS_AT_ONCE = 1 << 16
_CALLS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Step:
    """What the tasks do between two barriers: a repetition of a phase, or all of it (repetition 0)."""

    phase: str
    repetition: int


class Expansion:
    """A pattern with the values of its parameters, ready to be expanded for any tasks.

    Attributes
    ----------
    operations : tuple of Operation
        Of all phases that are not left out.
    calls : tuple of str
        Names of the calls, by the numbers in the rows.
    steps : tuple of Step
    step_phase : ndarray of int64
        The number of the phase of each step.
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
        """How often each phase is gone through; refuses what a task could never do."""
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
            raise EnsioError(f"{where}: a task would make more than {MOST_CALLS_OF_A_TASK} calls")

    def passes(self) -> Iterator[tuple[int, Phase, int, dict[str, Number]]]:
        """Each repetition of each phase: the step it belongs to, and the values of the names in it."""
        step = -1
        for phase, repetitions in zip(self.phases, self._repetitions, strict=True):
            for repetition in range(repetitions):
                if repetition == 0 or phase.barrier != PHASE:
                    step += 1
                yield step, phase, repetition, {**self.parameters, "repetition": repetition}

    def spans(self) -> Iterator[tuple[int, int]]:
        """Spans of tasks (first, end) whose calls together fit well into memory."""
        for first in range(0, self.tasks, _TASKS_AT_ONCE):
            end = min(first + _TASKS_AT_ONCE, self.tasks)
            before = np.cumsum(self.most_calls(first, end)) // _CALLS_AT_ONCE
            cuts = np.flatnonzero(np.diff(before)) + 1 + first
            edges = [first, *cuts.tolist(), end]
            yield from pairwise(edges)

    def most_calls(self, first: int, end: int) -> np.ndarray:
        """At most so many calls each of these tasks makes, without what is received: shape (end - first,)."""
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

    def block(self, first: int, end: int) -> Block:
        """The calls of the tasks from `first` to `end` - 1.

        Raises
        ------
        EnsioError
            If a number makes no sense: a negative offset, a size that is too small, a call on a file that is
            not open, a file or a task that does not exist.
        """
        return BlockState(self, first, end).block()

    def evaluate_numbers(self, operation: Operation) -> tuple[int, int]:
        """The numbers of an operation and of its call."""
        return self._operation_numbers[id(operation)], self._call_numbers[operation.call]
