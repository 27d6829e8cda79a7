"""Runs that are simulated from patterns of a few phases, of which tests know the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ensembles as en
from ensembles.workloads.patterns import expand
from ensembles.workloads.patterns.reading import read_pattern
from ensembles.workloads.simulation.models import Model, read_model
from ensembles.workloads.simulation.simulate import simulate

OPEN = '[[phases]]\nname = "open"\n[[phases.operations]]\ncall = "open"\nfile = "data"\n'


def keys(**values: Any) -> str:
    """Lines of a pattern."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def operation(call: str, **how: Any) -> str:
    """Calls of a phase, on the file ``data`` unless another is named or they are of no file."""
    file = {} if call.startswith("task.") or "file" in how else {"file": "data"}
    return "[[phases.operations]]\n" + keys(call=call, **file, **how)


def stage(name: str, *operations: str, **how: Any) -> str:
    """A phase of a pattern."""
    return "[[phases]]\n" + keys(name=name, **how) + "".join(operations)


def pattern(*phases: str, files: Mapping[str, str] | None = None, **parameters: Any) -> str:
    """A pattern of POSIX calls, on a shared file unless others are named."""
    paths = {"data": "data.dat"} if files is None else files
    tables = "".join(f"[files.{name}]\n" + keys(path=path) for name, path in paths.items())
    head = keys(title="made for a test", layer="posix")
    return head + "[parameters]\n" + keys(**parameters) + tables + "".join(phases)


def model(faults: Sequence[str] = (), **machine: float) -> Model:
    """A file system on which a test changes something."""
    return read_model("healthy", list(faults)).with_settings(machine, "test")


def simulated(folder: Path, text: str, machine: Model, seed: int = 1, **parameters: float) -> en.Run:
    """The run of a pattern, in a new folder."""
    folder.mkdir()
    path = folder.with_name(f"{folder.name}.toml")
    path.write_text(text)
    simulate(expand(read_pattern(path), parameters), machine, folder, seed=seed)
    return en.open(str(folder))


def span_s(run: en.Run) -> float:
    """From the first call to the end of the last one."""
    return float(run.events.end.max() - run.events.start.min()) * 1e-9
