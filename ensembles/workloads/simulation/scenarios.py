"""Scenarios: simulated runs with a known cause of slow I/O and an answer sheet.

A scenario is a TOML file with a pattern, a model and a cause: faults of the model, parameters of the pattern,
or both. At strength 0 the cause is absent, and the run is the healthy reference.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensembles.files.toml_files import read_toml
from ensembles.model.errors import EnsioError
from ensembles.model.levels import WORTH_NAMING
from ensembles.recorder.install_paths import installed
from ensembles.workloads.patterns import expand, read_pattern
from ensembles.workloads.patterns.toml_tables import Lines, Tables
from ensembles.workloads.simulation.models import Model, read_model
from ensembles.workloads.simulation.simulate import SimulationResult, simulate, simulated_span_s

TRUTH_FILE = "truth.json"

_PATTERNS = "patterns"


@dataclass(frozen=True)
class Scenario:
    """A pattern, a model and a known cause of slow I/O."""

    name: str  # Name of the file without its ending
    path: Path
    title: str
    cause: str | None  # Identifier of the correct finding; None: the run is healthy
    # pattern, model: Names or paths
    pattern: str
    model: str
    parameters: Mapping[str, int | str]  # Parameters of the pattern at every strength
    planted: Mapping[str, tuple[int, int]]  # Parameters of the pattern at strength 0 and at strength 1
    faults: Mapping[str, float]  # Strengths of the model's faults at strength 1
    settings: Mapping[str, float]  # Settings that replace those of the model
    # Place of the cause: ``op``, ``file`` (beginning of its name), ``ranks`` (first and last). Places that
    # the model draws are added in a run.
    where: Mapping[str, Any]

    def overrides(self, strength: float, tasks: int | None = None) -> dict[str, int | str]:
        """Return the parameters of the pattern at a strength: 0 without the cause, 1 as in the scenario.

        Values between and above are interpolated linearly. Above strength 1, parameters that fall continue to
        fall by factors, and stay at 1 or more: a number of aggregators cannot be negative.
        """
        values = dict(self.parameters)
        for name, (without, with_) in self.planted.items():
            value = round(without + strength * (with_ - without))
            if strength > 1 and 1 <= with_ < without:
                value = max(round(without * (with_ / without) ** strength), 1)
            if value < 0:
                raise EnsioError(
                    f"{self.path}: at strength {strength:g} {name} would be {value}: choose another"
                )
            values[name] = value
        if tasks is not None:
            values["tasks"] = tasks
        return values

    def scenario_seed(self, seed: int) -> int:
        """Return the seed of this scenario in a set with a seed; scenarios of a set have different seeds."""
        return int.from_bytes(hashlib.sha256(f"{seed} {self.name}".encode()).digest()[:8], "little")


def read_scenarios() -> list[Scenario]:
    """Read all installed scenarios, sorted by name."""
    return [read_scenario(path) for path in sorted(installed("share/ensio/scenarios").glob("*.toml"))]


def read_scenario(path: Path) -> Scenario:
    """Read a scenario."""
    text, content = read_toml(path)
    tables = Tables(path, Lines(text))
    tables.keys(
        content,
        (),
        ("title", "pattern", "model"),
        ("cause", "where", "parameters", "planted", "fault", "settings"),
    )
    texts = {
        key: tables.text(content, (), key) for key in ("title", "pattern", "model", "cause") if key in content
    }
    parameters, planted, faults, settings = (
        _table(tables, content, key) for key in ("parameters", "planted", "fault", "settings")
    )
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise EnsioError(
                f"{tables.where('parameters', name)}: {name} must be a whole number or an expression"
            )
    for name, strength in faults.items():
        if isinstance(strength, bool) or not isinstance(strength, (int, float)):
            raise EnsioError(f"{tables.where('fault', name)}: the strength of {name} must be a number")
    if "cause" in texts and not (planted or faults):
        raise EnsioError(f"{tables.where('cause')}: a cause needs [planted.NAME] or [fault]: add one of them")
    return Scenario(
        path.stem,
        path,
        texts["title"],
        texts.get("cause"),
        texts["pattern"],
        texts["model"],
        parameters,
        {name: _ends(tables, name, entry) for name, entry in planted.items()},
        {name: float(strength) for name, strength in faults.items()},
        _settings(tables, settings),
        _where(tables, _table(tables, content, "where")),
    )


_WHERE_TEXTS = ("op", "file")


def _where(tables: Tables, where: Mapping[str, Any]) -> dict[str, Any]:
    """Check the place of a cause."""
    tables.keys(where, ("where",), (), (*_WHERE_TEXTS, "ranks"))
    for key in _WHERE_TEXTS:
        if key in where and not isinstance(where[key], str):
            raise EnsioError(f"{tables.where('where', key)}: {key} must be a text")
    ranks = where.get("ranks", [0, 0])
    if not (isinstance(ranks, list) and len(ranks) == 2 and all(type(rank) is int for rank in ranks)):
        raise EnsioError(f"{tables.where('where', 'ranks')}: ranks must be the first and the last rank")
    return dict(where)


def _settings(tables: Tables, settings: Mapping[str, Any]) -> dict[str, float]:
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise EnsioError(f"{tables.where('settings', name)}: {name} must be a number")
    return {name: float(value) for name, value in settings.items()}


def _table(tables: Tables, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key, {})
    if not isinstance(value, dict):
        raise EnsioError(f"{tables.where(key)}: {key} must be a table, [{key}]")
    return value


def _ends(tables: Tables, name: str, entry: Any) -> tuple[int, int]:
    if not isinstance(entry, dict):
        raise EnsioError(
            f"{tables.where('planted', name)}: {name} must be a table with the keys without and with"
        )
    tables.keys(entry, ("planted", name), ("without", "with"))
    for key, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise EnsioError(f"{tables.where('planted', name, key)}: {key} must be a whole number")
    return entry["without"], entry["with"]


def _model_of(scenario: Scenario, model: str | None, faults: Mapping[str, float]) -> Model:
    found = read_model(model or scenario.model, [f"{name}={value!r}" for name, value in faults.items()])
    return found.with_settings(scenario.settings, str(scenario.path))


def run_scenario(
    scenario: Scenario,
    directory: Path,
    find_pattern: Callable[[str], Path],
    seed: int = 0,
    strength: float = 1.0,
    tasks: int | None = None,
    model: str | None = None,
) -> SimulationResult:
    """Simulate a scenario and write its answer sheet (`TRUTH_FILE`).

    The answer is measured: the same seed is simulated again without the cause. What costs less than
    `WORTH_NAMING` of the run does not count, and nothing does at strength 0. `find_pattern` finds patterns
    outside the folder of the scenario.
    """
    beside = scenario.path.parent / _PATTERNS / f"{scenario.pattern}.toml"
    pattern = read_pattern(beside if beside.is_file() else find_pattern(scenario.pattern))
    plan = expand(pattern, scenario.overrides(strength, tasks))
    faults = {name: usual * strength for name, usual in scenario.faults.items()}
    of_model = _model_of(scenario, model, faults)
    drawn = scenario.scenario_seed(seed)
    result = simulate(plan, of_model, directory, pattern.name, drawn)
    causes: list[dict[str, Any]] = []
    if scenario.cause and strength:
        healthy = expand(pattern, scenario.overrides(0, tasks))
        without_s = simulated_span_s(healthy, _model_of(scenario, model, dict.fromkeys(faults, 0.0)), drawn)
        alone_s = result.span_s - without_s
        if alone_s >= WORTH_NAMING * result.span_s:
            where = {**scenario.where, **result.where}
            causes = [{"id": scenario.cause, "alone_s": alone_s, "where": where}]
    truth = {
        "causes": causes,
        "cause": scenario.cause if strength else None,
        "scenario": scenario.name,
        "title": scenario.title,
        "pattern": pattern.name,
        "model": of_model.name,
        "faults": faults,
        "parameters": dict(plan.parameters),
        "strength": strength,
        "tasks": result.tasks,
        "seed": seed,
        "span_s": result.span_s,
    }
    path = directory / TRUTH_FILE
    try:
        path.write_text(json.dumps(truth, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror}") from error
    return result
