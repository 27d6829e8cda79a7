"""Simulation of a pattern in virtual time on a model of a parallel file system."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ensembles.files.names import TRACE_FILE
from ensembles.model.errors import EnsioError
from ensembles.model.metadata import Mount, Process, RunMetadata
from ensembles.passes.progress import announced
from ensembles.workloads.patterns import Plan
from ensembles.workloads.simulation.models import Model
from ensembles.workloads.simulation.output import (
    SimulatedProfile,
    SimulatedTrace,
    Text,
    phase_starts_ns,
    read_file_facts,
)
from ensembles.workloads.simulation.program import program, run_program

MODES = ("trace", "profile")

DATA_FOLDER = "/simulated"
"""Folder of the files in simulated runs; it does not exist."""


@dataclass(frozen=True)
class SimulationResult:
    """Counts and durations of a simulation.

    `events`: calls that a recorder would record. `span_s`: virtual time from the start to the end of the last
    task. `steps`: phase, repetition and duration in seconds of each step of the pattern, barrier included.
    `where`: place of the fault of a task, a node or a target: ``ranks`` (first and last) or ``target``.
    """

    directory: Path
    tasks: int
    nodes: int
    events: int
    model_calls: int
    span_s: float
    steps: list[tuple[str, int, float]]
    where: dict[str, Any] = field(default_factory=dict)


def simulate(
    plan: Plan,
    model: Model,
    directory: Path,
    name: str = "pattern",
    seed: int = 0,
    mode: str = "trace",
    command: Sequence[str] = (),
    says_how: bool = True,
    named_phases: bool = True,
) -> SimulationResult:
    """Execute a plan on a model, and write the run; the same plan, model and seed give the same events.

    A pattern that does not set the number of tasks on a node leaves it to the model. `says_how`: store
    pattern, model, faults and seed in the environment of the run; tests of diagnoses must not know them.
    `named_phases`: store the steps of the pattern as phases that the program named.
    """
    if "tasks_per_node" not in plan.parameters:
        plan = replace(plan, tasks_per_node=model.tasks_per_node)
    model = model.striped(plan.hints)
    # In the folder of the result, because /tmp may be too small.
    with tempfile.TemporaryDirectory(prefix=".ensio-simulate-", dir=directory) as scratch:
        folder = Path(scratch)
        plan_path, settings_path, output = folder / "plan", folder / "settings", folder / "output"
        output.mkdir()
        plan.write(plan_path, Path(DATA_FOLDER), seed)
        try:
            settings_path.write_text(model.with_tasks_per_node(plan.tasks_per_node).settings_text())
        except OSError as error:
            raise EnsioError(f"{settings_path} cannot be written: {error.strerror}") from error
        with announced("simulating", name, plan.operations, "calls"):
            run_program(plan_path, settings_path, seed, mode, output)
        plan_path.unlink()
        text = Text.read(output)
        metadata = _metadata(text, model, name, seed, mode, command)
        if not says_how:
            metadata.environment.clear()
            metadata.mounts.clear()
        metadata.file_facts.update(read_file_facts(output, text.files))
        _write(output, text, metadata, directory / TRACE_FILE, named_phases)
        starts = phase_starts_ns(output)
    lengths = (np.diff(starts) / 1e9).tolist()
    steps = [(phase, number, length) for (phase, number), length in zip(text.steps, lengths, strict=True)]
    nodes = -(-text.tasks // text.tasks_per_node)
    return SimulationResult(
        directory, text.tasks, nodes, text.events, text.model_calls, text.end_ns / 1e9, steps, _place(text)
    )


def _place(text: Text) -> dict[str, Any]:
    """Tell which tasks, or which target, a fault slows down."""
    task, node, target = (text.slow[key] for key in ("straggler_task", "straggler_node", "slow_target"))
    found: dict[str, Any] = {} if target < 0 else {"target": target}
    if task >= 0:
        return found | {"ranks": [task, task]}
    if node >= 0:
        first = node * text.tasks_per_node
        return found | {"ranks": [first, min(first + text.tasks_per_node, text.tasks) - 1]}
    return found


def simulated_span_s(plan: Plan, model: Model, seed: int = 0) -> float:
    """Simulate a plan without writing a run, and return its virtual time in seconds."""
    if "tasks_per_node" not in plan.parameters:
        plan = replace(plan, tasks_per_node=model.tasks_per_node)
    model = model.striped(plan.hints)
    with tempfile.TemporaryDirectory(prefix="ensio-simulate-") as scratch:
        folder = Path(scratch)
        plan_path, settings_path, output = folder / "plan", folder / "settings", folder / "output"
        output.mkdir()
        plan.write(plan_path, Path(DATA_FOLDER), seed)
        settings_path.write_text(model.with_tasks_per_node(plan.tasks_per_node).settings_text())
        run_program(plan_path, settings_path, seed, "profile", output)
        return Text.read(output).end_ns / 1e9


def _write(output: Path, text: Text, metadata: RunMetadata, path: Path, named_phases: bool) -> None:
    from ensembles.readers.foreign.common.import_table import ImportedSource
    from ensembles.writers.tracefile.tracefile import write_trace_file

    source: ImportedSource | SimulatedProfile
    if metadata.mode == "profile":
        source = SimulatedProfile(output, text, metadata)
    else:
        source = ImportedSource(str(path), SimulatedTrace(output, text, metadata, named_phases))
    try:
        write_trace_file(source, str(path), follow=False)
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror or error}") from error


def _metadata(
    text: Text, model: Model, name: str, seed: int, mode: str, command: Sequence[str]
) -> RunMetadata:
    nodes = -(-text.tasks // text.tasks_per_node)
    hosts = [f"node{number:05}" for number in range(nodes)]
    origin_ns = time.time_ns()
    end_ns = origin_ns + text.end_ns
    user, words, executable = str(os.getuid()), tuple(command) or (name,), f"{DATA_FOLDER}/bin/{name}"
    processes = [
        Process(
            rank=rank,
            host=hosts[rank // text.tasks_per_node],
            pid=rank + 2,
            parent_pid=1,
            program=executable,
            command=words,
            cwd=DATA_FOLDER,
            user=user,
            start_unix_ns=origin_ns,
            end_unix_ns=end_ns,
        )
        for rank in range(text.tasks)
    ]
    faults = model.faults_text()
    return RunMetadata(
        tasks=text.tasks,
        threads=text.tasks,
        origin_unix_ns=origin_ns,
        calls=text.calls,
        files=text.files,
        processes=processes,
        notes=[],
        mode=mode,
        launcher="ensio simulate",
        recorder=f"{program().name} (simulated)",
        hosts=hosts,
        clock_error_s=0.0,
        clock_step_s=1e-9,
        user=user,
        environment={
            "ENSIO_SIMULATED_PATTERN": name,
            "ENSIO_SIMULATED_MODEL": model.name,
            "ENSIO_SIMULATED_FAULTS": faults,
            "ENSIO_SIMULATED_SEED": str(seed),
        },
        mounts={hosts[0]: (Mount(DATA_FOLDER, "simulated", model.name),)},
    )
