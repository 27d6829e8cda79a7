"""Simulate drawn runs, and measure what each habit costs."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

from calibration.evaluate.draw import Drawn, draw
from ensembles.workloads.patterns import expand
from ensembles.workloads.patterns.pattern import Pattern
from ensembles.workloads.simulation.scenarios import LEAST_SHARE
from ensembles.workloads.simulation.simulate import simulate, simulated_span_s


def make_run(drawn: Drawn, folder: Path) -> dict:
    """Simulate a drawn run, without its names and environment, and measure its causes.

    Parameters
    ----------
    drawn : Drawn
    folder : Path
        New folder of the run. The answer is in ``<folder>.truth.json``.

    Returns
    -------
    dict
        ``causes`` (``id``, ``alone_s``, ``where``, ``left_s``: by cause that is mended first, what this one
        costs then), ``span_s``, ``harmless`` (costs of the other habits).
    """
    folder.mkdir(parents=True)
    source = folder.parent / f"{folder.name}.pattern"
    source.mkdir()
    pattern, model = drawn.pattern(source), drawn.model()
    plan = expand(pattern, drawn.parameters)
    span_s = simulate(
        plan, model, folder, "program", drawn.seed, says_how=False, named_phases=drawn.named
    ).span_s
    causes, harmless = [], {}
    for habit in drawn.habits:
        other = expand(pattern, {**drawn.parameters, **habit.parameters})
        alone_s = span_s - simulated_span_s(other, drawn.model(habit.faults), drawn.seed)
        if alone_s >= LEAST_SHARE * span_s:
            causes.append({"id": habit.id, "alone_s": alone_s, "where": habit.where})
        else:
            harmless[habit.id] = alone_s
    _measure_pairs(drawn, pattern, causes, span_s)
    causes.sort(key=lambda cause: -cause["alone_s"])
    truth = {
        "seed": drawn.seed,
        "kind": drawn.kind,
        "tasks": plan.tasks,
        "span_s": span_s,
        "causes": causes,
        "harmless": harmless,
        "named": drawn.named,
    }
    (folder.parent / f"{folder.name}.truth.json").write_text(json.dumps(truth, indent=2) + "\n")
    return truth


def _measure_pairs(drawn: Drawn, pattern: Pattern, causes: list[dict], span_s: float) -> None:
    """Measure what each cause costs after another one is mended."""
    habits = {habit.id: habit for habit in drawn.habits}
    for cause in causes:
        cause["left_s"] = {}
    for one, other in combinations(causes, 2):
        a, b = habits[one["id"]], habits[other["id"]]
        if set(a.parameters) & set(b.parameters):
            continue  # their remedies contradict each other
        both = expand(pattern, {**drawn.parameters, **a.parameters, **b.parameters})
        both_s = simulated_span_s(both, drawn.model((*a.faults, *b.faults)), drawn.seed)
        one["left_s"][b.id] = span_s - other["alone_s"] - both_s
        other["left_s"][a.id] = span_s - one["alone_s"] - both_s


def make_seeded(seed: int, number: int, folder: Path) -> dict:
    """Make run `number` of an evaluation: of seven, three are healthy, three have a cause, one has two."""
    return make_run(draw(seed * 100_003 + number, number % 7 in (0, 2, 4), number % 7 == 6), folder)
