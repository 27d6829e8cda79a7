"""Simulate drawn runs, and measure what each habit costs."""

from __future__ import annotations

import json
from pathlib import Path

from calibration.evaluate.draw import Drawn, draw
from ensembles.workloads.patterns import expand
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
        ``causes`` (``id``, ``alone_s``, ``where``), ``span_s``, ``harmless`` (costs of the other habits).
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


def make_seeded(seed: int, number: int, folder: Path) -> dict:
    """Make run `number` of an evaluation: of seven, three are healthy, three have a cause, one has two."""
    return make_run(draw(seed * 100_003 + number, number % 7 in (0, 2, 4), number % 7 == 6), folder)
