"""Simulate drawn runs, and measure what each habit costs."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from calibration.evaluate.draw import Drawn, Habit, draw
from ensembles.model.levels import WORTH_NAMING
from ensembles.workloads.patterns import expand
from ensembles.workloads.simulation.simulate import simulate, simulated_span_s

REPLICATES, MOST_REPLICATES = 5, 20
"""Simulations that measure a cost: one difference of programs with other calls is mostly noise."""

_LEAST_T = 2.0


class Costs:
    """Spans of a drawn run with and without its habits, with equal noise wherever the calls are equal."""

    def __init__(self, drawn: Drawn, folder: Path) -> None:
        self._drawn, self._pattern = drawn, drawn.pattern(folder)
        self.plan = expand(self._pattern, drawn.parameters)
        self._spans_s = cache(self._simulated)

    def _simulated(
        self, parameters: tuple[tuple[str, int], ...], faults: tuple[str, ...], numbers: range
    ) -> np.ndarray:
        plan = expand(self._pattern, {**self._drawn.parameters, **dict(parameters)})
        model = self._drawn.model(faults)
        return np.array([simulated_span_s(plan, model, self._drawn.seed + number) for number in numbers])

    def without(self, *habits: Habit, numbers: range = range(REPLICATES)) -> np.ndarray:
        """Return the spans without some habits, one for each replicate; the first is the drawn run."""
        parameters = {name: value for habit in habits for name, value in habit.parameters.items()}
        faults = {name for habit in habits for name in habit.faults}
        return self._spans_s(tuple(sorted(parameters.items())), tuple(sorted(faults)), numbers)

    def cost_s(self, habit: Habit, mended: tuple[Habit, ...] = ()) -> float:
        """Return the mean cost of a habit after others are mended; 0 if noise explains it.

        Replicates are as long as their noise makes them: the mean share of them is that of the drawn run.
        """
        lost = self.without(*mended) - self.without(*mended, habit)
        if habit.faults and not habit.parameters:
            return float(lost[0])  # the calls are the same, and so is their noise
        if _unclear(lost) and abs(lost.mean()) >= WORTH_NAMING / 2 * self.without().mean():
            more = range(REPLICATES, MOST_REPLICATES)
            further = self.without(*mended, numbers=more) - self.without(*mended, habit, numbers=more)
            lost = np.append(lost, further)
        spans = self.without(*mended)
        return 0.0 if _unclear(lost) else float(lost.mean() * spans[0] / spans.mean())


def _unclear(lost: np.ndarray) -> bool:
    """Tell whether noise may explain a mean difference."""
    error = float(lost.std(ddof=1)) / len(lost) ** 0.5
    return abs(float(lost.mean())) < _LEAST_T * error


def make_run(drawn: Drawn, folder: Path) -> dict:
    """Simulate a drawn run, without its names and environment, and measure its causes."""
    folder.mkdir(parents=True)
    source = folder.parent / f"{folder.name}.pattern"
    source.mkdir()
    costs = Costs(drawn, source)
    span_s = simulate(
        costs.plan, drawn.model(), folder, "program", drawn.seed, says_how=False, named_phases=drawn.named
    ).span_s
    causes, harmless = [], {}
    for habit in drawn.habits:
        alone_s = costs.cost_s(habit)
        if alone_s >= WORTH_NAMING * span_s:
            causes.append({"id": habit.id, "alone_s": alone_s, "where": habit.where, "left_s": {}})
        else:
            harmless[habit.id] = alone_s
    _measure_pairs(drawn, costs, causes)
    causes.sort(key=lambda cause: -cause["alone_s"])
    return {
        "seed": drawn.seed,
        "kind": drawn.kind,
        "tasks": costs.plan.tasks,
        "span_s": span_s,
        "causes": causes,
        "harmless": harmless,
        "named": drawn.named,
    }


def _measure_pairs(drawn: Drawn, costs: Costs, causes: list[dict]) -> None:
    """Measure what each cause costs after another one is mended."""
    habits = {habit.id: habit for habit in drawn.habits}
    for one, other in combinations(causes, 2):
        a, b = habits[one["id"]], habits[other["id"]]
        if set(a.parameters) & set(b.parameters):
            continue  # their remedies contradict each other
        one["left_s"][b.id] = costs.cost_s(a, (b,))
        other["left_s"][a.id] = costs.cost_s(b, (a,))


def make_seeded(seed: int, number: int, folder: Path) -> dict:
    """Make run `number` of an evaluation: of seven, three are healthy, three have a cause, one has two."""
    return make_run(draw(seed * 100_003 + number, number % 7 in (0, 2, 4), number % 7 == 6), folder)
