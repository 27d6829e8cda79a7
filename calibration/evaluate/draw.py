"""Draw a run: a seed gives program, sizes, machine, noise, load, and what is planted.

A *habit* is something that a run does and that its remedy takes away: settings of the program, faults of the
machine, or both. Every run has some, and most of them cost nothing: whether one is a cause is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from calibration.evaluate.programs import COLLECTIVE, HDF5, records
from ensembles.workloads.patterns.pattern import Pattern
from ensembles.workloads.patterns.reading import read_pattern
from ensembles.workloads.simulation.models import Model, read_model

ROOT = Path(__file__).resolve().parents[2]

MOST_CALLS = 40_000
"""Calls of a drawn run, about: an evaluation of many runs has to be affordable."""


@dataclass
class Habit:
    """What a remedy changes: parameters of the program, and faults that it switches off."""

    id: str
    parameters: dict[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    where: dict[str, Any] = field(default_factory=dict)


@dataclass
class Drawn:
    """A drawn run before it is simulated."""

    seed: int
    kind: str
    text: str | None
    parameters: dict[str, int]
    settings: dict[str, float]
    faults: dict[str, float]
    habits: list[Habit]
    named: bool

    def pattern(self, folder: Path) -> Pattern:
        """Read the pattern, whose text a drawn program writes into a folder."""
        if self.text is None:
            return read_pattern(ROOT / "testbed" / "patterns" / f"{self.kind}.toml")
        path = folder / f"{self.kind}.toml"
        path.write_text(self.text)
        return read_pattern(path)

    def model(self, without: tuple[str, ...] = ()) -> Model:
        """Return the machine, with its faults except some."""
        faults = [f"{name}={0 if name in without else strength!r}" for name, strength in self.faults.items()]
        wider = {"stripe_count": WIDER} if "single-stripe" in without else {}
        return read_model("healthy", faults).with_settings(self.settings | wider, "drawn")


WIDER = 8
"""Stripes of the same run without a single stripe."""


def _one_stripe(settings: dict[str, float], shared: bool = True) -> list[Habit]:
    """Return the habit of a shared file on one target."""
    return (
        [Habit("single-stripe", faults=("single-stripe",))]
        if shared and settings["stripe_count"] == 1
        else []
    )


PLANTS = {
    "records": (
        "small-requests",
        "metadata-storm",
        "imbalance",
        "straggler-task",
        "straggler-node",
        "slow-target",
        "misaligned-requests",
        "sync-per-write",
        "redundant-reads",
        "seek-heavy",
        "close-cost",
        "serialised-metadata",
        "cache-cliff",
        "interference",
        "stdio-buffer",
    ),
    "collective": ("collective-coordination", "aggregation-mismatch"),
    "madbench": ("strided-readahead",),
    "hdf5": ("hdf5-metadata", "collective-coordination", "straggler-node", "straggler-task"),
}

_HDF5_SHARE = 0.1
"""Share of the runs whose program uses HDF5."""


def draw(seed: int, healthy: bool, pair: bool = False) -> Drawn:
    """Draw a run."""
    rng = np.random.default_rng([seed, 17])
    kind = str(rng.choice(["records", "collective", "madbench"], p=[0.8, 0.12, 0.08]))
    # From separate numbers, so that a seed draws the other programs as it did without HDF5.
    of_hdf5 = np.random.default_rng([seed, 23])
    if of_hdf5.random() < _HDF5_SHARE:
        kind, rng = "hdf5", of_hdf5
    causes = () if healthy else _choose(rng, PLANTS[kind], 1 + pair)
    settings = _machine(rng)
    faults: dict[str, float] = {}
    strength = float(np.exp(rng.uniform(np.log(0.05), 0)))
    if kind == "records":
        return _records(seed, rng, causes, settings, strength)
    if kind == "hdf5":
        return _hdf5(seed, rng, causes, settings, strength)
    if kind == "collective":
        per_node = int(rng.choice([2, 4, 8]))
        tasks = int(rng.choice([16, 32, 64, 128]))
        nodes = max(tasks // per_node, 1)
        parameters = dict(
            tasks=tasks,
            tasks_per_node=per_node,
            steps=int(rng.integers(3, 12)),
            aggregators=nodes,
            block_bytes=int(2 ** rng.uniform(18, 23)),
            buffer_bytes=16 << 20,
            **_compute(rng, 0.3),
        )
        habits = _one_stripe(settings)
        if "collective-coordination" in causes:
            faults["collective-coordination"] = strength
            habits.append(Habit("collective-coordination", faults=("collective-coordination",)))
        if "aggregation-mismatch" in causes:
            parameters.update(aggregators=1, buffer_bytes=int(2 ** rng.uniform(18, 24)))
            habits.append(Habit("aggregation-mismatch", {"aggregators": nodes, "buffer_bytes": 16 << 20}))
        return Drawn(seed, kind, COLLECTIVE, parameters, settings, faults, habits, _named(rng))
    settings.update(page_cache_MiB=1024, cache_MiB=float(rng.choice([64, 256])))
    parameters = {
        "tasks": int(rng.choice([8, 16, 32, 64])),
        "matrices": int(rng.integers(6, 12)),
        "shrink": 1,
    }
    if causes:
        faults["strided-readahead"] = strength
    habits = [Habit("strided-readahead", faults=("strided-readahead",))] if causes else []
    habits += _one_stripe(settings)
    return Drawn(seed, "madbench", None, parameters, settings, faults, habits, _named(rng))


def _choose(rng: np.random.Generator, names: tuple[str, ...], count: int) -> tuple[str, ...]:
    return tuple(rng.choice(names, min(count, len(names)), replace=False).tolist())


def _named(rng: np.random.Generator) -> bool:
    return bool(rng.random() < 0.3)


def _machine(rng: np.random.Generator) -> dict[str, float]:
    noise = float(rng.uniform(0.05, 0.6))
    return {
        "call_noise": noise,
        "request_noise": float(rng.uniform(0.05, 0.4)),
        "mds_noise": float(rng.uniform(0.1, 0.6)),
        "targets": int(rng.choice([8, 16, 48, 96])),
        "target_MB_per_s": float(rng.uniform(150, 800)),
        "cache_MiB": float(rng.choice([0, 32, 256])),
        "absorb_MB_per_s": float(rng.uniform(1000, 5000)),
        "link_MB_per_s": float(rng.uniform(500, 5000)),
        "stripe_count": int(rng.choice([0, 1, 4])),
        "stripe_MiB": float(rng.choice([1, 1, 4])),
        "mds_op_ms": float(rng.uniform(0.1, 0.6)),
    }


def _compute(rng: np.random.Generator, step_s: float) -> dict[str, int]:
    """Draw computation before each step, from none to 30 times the I/O."""
    share = float(rng.choice([0, 0.3, 1, 3, 30], p=[0.3, 0.25, 0.25, 0.15, 0.05]))
    spread = float(rng.choice([0, 0.02, 0.2]))
    us = 1e6 * share * step_s
    return {"compute_us": int(us), "compute_spread_us": int(us * spread)}


def _hdf5(
    seed: int, rng: np.random.Generator, causes: tuple[str, ...], settings: dict[str, float], strength: float
) -> Drawn:
    """Draw a program that writes a dataset with attributes in each step, through HDF5."""
    tasks, calls = int(2 ** rng.uniform(3, 7)), int(rng.choice([1, 2, 4]))
    block = int(2 ** rng.uniform(18, 22))
    parameters = dict(
        tasks=tasks,
        tasks_per_node=int(rng.choice([2, 4, 8])),
        steps=int(rng.integers(3, 9)),
        calls=calls,
        block_bytes=block,
        collective=int(rng.random() < 0.5 or "collective-coordination" in causes),
        attributes=int(rng.choice([1, 1, 4])),
        **_compute(rng, calls * block / 100e6),
    )
    faults: dict[str, float] = {}
    habits: list[Habit] = []
    if "hdf5-metadata" in causes:
        # Small requests wait for a lock of the file system, as in the scenario of GCRM.
        parameters["attributes"] = int(2 ** rng.uniform(4, 8))
        faults["small-requests"] = strength
        settings["small_request_ms"] = 4.0
    if parameters["attributes"] > 1:
        joined = {"attributes": 1, "attribute_bytes": 64 * parameters["attributes"]}
        habits.append(Habit("hdf5-metadata", joined))
    for cause in causes:
        if cause != "hdf5-metadata":
            _plant(cause, rng, parameters, settings, faults, habits, strength, MOST_CALLS)
    habits += _one_stripe(settings)
    return Drawn(seed, "hdf5", HDF5, parameters, settings, faults, habits, _named(rng))


def _records(
    seed: int, rng: np.random.Generator, causes: tuple[str, ...], settings: dict[str, float], strength: float
) -> Drawn:
    tasks = int(2 ** rng.uniform(3, 9 if rng.random() < 0.9 else 12))
    per_node = int(rng.choice([2, 4, 8, 16]))
    steps = int(rng.integers(3, 9))
    most = max(MOST_CALLS // (tasks * steps), 1)
    calls = int(min(rng.choice([1, 2, 4, 8, 16]), most))
    if "stdio-buffer" in causes:  # it is what makes the small requests
        causes = tuple(cause for cause in causes if cause != "small-requests")
    layer = "stdio" if "stdio-buffer" in causes else str(rng.choice(["posix", "mpiio"], p=[0.85, 0.15]))
    shared = bool(rng.random() < 0.5) and layer != "stdio"
    barriers = bool(rng.random() < 0.8)
    record = int(rng.choice([1, 2, 4, 8])) << 20
    parameters = dict(
        tasks=tasks,
        tasks_per_node=per_node,
        steps=steps,
        calls=calls,
        record_bytes=record,
        lookups=int(rng.choice([0, 0, 1, 3])),
        reopen=int(rng.random() < 0.25),
        end_sync=int(rng.random() < 0.4),
        header_calls=int(rng.choice([0, 0, 1, 4])),
        slack_bytes=int(rng.choice([1, 1, 513, 4097])),
        reads=int(calls * steps * (rng.random() < 0.5)),
        **_compute(rng, calls * record / 100e6),
    )
    if layer != "posix":
        parameters.update(lookups=0, reopen=0, end_sync=0, reads=0, header_calls=0)
    faults: dict[str, float] = {}
    habits: list[Habit] = []
    for cause in causes:
        if layer == "mpiio" and cause not in (
            "imbalance",
            "straggler-task",
            "straggler-node",
            "interference",
        ):
            layer = "posix"
        _plant(cause, rng, parameters, settings, faults, habits, strength, most)
    if layer == "mpiio" or {"misaligned-requests", "redundant-reads"} & set(causes):
        shared = True
    if layer == "stdio":  # streams write only, each task to its file
        shared = False
        parameters.update(lookups=0, reopen=0, end_sync=0, reads=0, header_calls=0, read_parts=1)
    if "slow-target" in causes:
        settings["stripe_count"] = int(rng.choice([1, 2]))
        settings["cache_MiB"] = float(rng.choice([0, 32]))
    if parameters["reads"]:
        parameters["reopen"] = 0
    known = {habit.id for habit in habits}
    if parameters["header_calls"] > 1 and "serialised-metadata" not in known:
        joined = {"header_calls": 1, "header_bytes": 512 * parameters["header_calls"]}
        habits.append(Habit("serialised-metadata", joined))
    if parameters["lookups"] > 1 and "metadata-storm" not in known:
        habits.append(Habit("metadata-storm", {"lookups": 1}))
    if parameters["reopen"] and "close-cost" not in known:
        habits.append(Habit("close-cost", {"reopen": 0}))
    if (
        parameters["record_bytes"] < 1 << 18
        and not {"small-requests", "stdio-buffer", "sync-per-write"} & known
    ):
        habits.append(Habit("small-requests"))
    _set_remedies(habits, parameters)
    habits += _one_stripe(settings, shared)
    text = records(layer, shared, bool(rng.random() < 0.5), barriers, steps, bool(parameters["reads"]))
    return Drawn(seed, "records", text, parameters, settings, faults, habits, barriers and _named(rng))


def _set_remedies(habits: list[Habit], parameters: dict[str, int]) -> None:
    """Set remedies that depend on the whole program, so that they keep its bytes."""
    tasks, record, calls = (parameters[name] for name in ("tasks", "record_bytes", "calls"))
    for habit in habits:
        if habit.id in ("small-requests", "stdio-buffer"):
            size = record + parameters["slack_bytes"] - 1
            joined = max(size * calls >> 20, 1)
            habit.parameters.update(
                calls=joined,
                reads=parameters["reads"] * joined // calls,
                record_bytes=size * calls // joined,
                slack_bytes=1,
            )
        elif habit.id == "imbalance":
            heavy, share = parameters["heavy_tasks"], parameters["heavy_share"]
            size = record + parameters["slack_bytes"] - 1
            even = record * (tasks + heavy * (share - 1)) // tasks
            habit.parameters.update(record_bytes=even, read_bytes=size)


def _plant(
    cause: str,
    rng: np.random.Generator,
    parameters: dict[str, int],
    settings: dict[str, float],
    faults: dict[str, float],
    habits: list[Habit],
    strength: float,
    most: int,
) -> None:
    p = parameters
    tasks = p["tasks"]
    if cause in ("small-requests", "stdio-buffer"):
        total = max(p["calls"] // 2, 1) << 20
        calls = max(min(most, int(rng.choice([64, 128, 256, 512]))), 2)
        p.update(calls=calls, record_bytes=max(total // calls, 1024), slack_bytes=1, reads=0, reopen=0)
        faults["small-requests"] = strength
        settings["small_request_ms"] = 4.0
        habits.append(Habit(cause))  # its remedy follows from what the run does in the end
    elif cause == "metadata-storm":
        p["lookups"] = int(min(2 ** rng.uniform(3, 8), max(most, 4)))
        faults["metadata-storm"] = strength * 0.5
        habits.append(Habit(cause, {"lookups": 1}))
    elif cause == "imbalance":
        heavy = max(int(tasks * rng.uniform(0.01, 0.1)), 1)
        share = int(rng.integers(2, 9))
        p.update(heavy_tasks=heavy, heavy_share=share, heavy_first=int(rng.integers(0, tasks - heavy + 1)))
        where = {"ranks": [p["heavy_first"], p["heavy_first"] + heavy - 1]}
        habits.append(Habit(cause, {"heavy_share": 1, "heavy_tasks": 0}, (), where))
    elif cause == "straggler-task":
        faults[cause] = strength
        settings["straggler_task"] = int(rng.integers(tasks))
        habits.append(Habit(cause, {}, (cause,), {"ranks": [int(settings["straggler_task"])] * 2}))
    elif cause == "straggler-node":
        faults[cause] = strength
        nodes = -(-tasks // p["tasks_per_node"])
        settings["straggler_node"] = int(rng.integers(nodes))
        first = int(settings["straggler_node"]) * p["tasks_per_node"]
        habits.append(
            Habit(cause, {}, (cause,), {"ranks": [first, min(first + p["tasks_per_node"], tasks) - 1]})
        )
    elif cause == "slow-target":
        faults[cause] = strength * 2
        settings["slow_target"] = int(rng.integers(settings["targets"]))
        habits.append(Habit(cause, {}, (cause,), {"target": int(settings["slow_target"])}))
    elif cause == "misaligned-requests":
        p["slack_bytes"] = int(rng.integers(1000, 500_000))
        faults[cause] = strength
        habits.append(Habit(cause, {"slack_bytes": 1}))
    elif cause == "sync-per-write":
        p.update(syncs=1, end_sync=1, record_bytes=int(2 ** rng.uniform(12, 20)), reads=0)
        p["calls"] = int(min(most, rng.choice([8, 32, 128])))
        faults[cause] = strength
        habits.append(Habit(cause, {"syncs": 0}))
    elif cause == "redundant-reads":
        p["reads"] = max(p["calls"] * p["steps"], 1)
        p["read_parts"] = int(min(tasks, rng.integers(3, 9)))
        habits.append(Habit(cause, {"read_parts": 1}))
    elif cause == "seek-heavy":
        p.update(record_bytes=int(2 ** rng.uniform(12, 17)), calls=int(min(most, 64)), slack_bytes=1, syncs=0)
        p["reads"], p["jump"] = p["calls"] * p["steps"], 0
        p["jump"] = next(j for j in range(p["reads"] // 3 + 2, 10 * p["reads"]) if np.gcd(j, p["reads"]) == 1)
        habits.append(Habit(cause, {"jump": 1}))
    elif cause == "close-cost":
        p.update(reopen=1, reads=0)
        faults[cause] = strength
        habits.append(Habit(cause, {}, (cause,)))
    elif cause == "serialised-metadata":
        p["header_calls"] = int(2 ** rng.uniform(4, 9))
        faults["small-requests"] = strength
        settings["small_request_ms"] = 4.0
        habits.append(Habit(cause, {"header_calls": 1, "header_bytes": 512 * p["header_calls"]}))
    elif cause == "cache-cliff":
        faults[cause] = strength
        settings["cache_MiB"] = 64.0
        habits.append(Habit(cause, {}, (cause,)))
    elif cause == "collective-coordination":
        faults[cause] = strength
        habits.append(Habit(cause, {}, (cause,)))
    elif cause == "interference":
        faults["background-load"] = strength
        settings["background_period_s"] = float(10 ** rng.uniform(-1.5, 0.5))
        habits.append(Habit(cause, {}, ("background-load",)))
