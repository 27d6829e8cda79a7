"""Simulated runs of the published workloads with the published sizes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import ensembles
from ensembles.run.run import Run
from ensembles.workloads.simulation.models import find_model

_OTHER = 1_000_003
"""Distance of the seeds of independent runs."""


@dataclass(frozen=True)
class Simulated:
    """A simulated run and the output of ``ensio simulate --json``.

    Attributes
    ----------
    path : str
        Run directory.
    told : dict
    """

    path: str
    told: dict

    @cached_property
    def run(self) -> Run:
        """The opened run."""
        return ensembles.open(self.path)

    @property
    def span_s(self) -> float:
        """Time from the first call to the end of the last, seconds."""
        return float(self.told["span_s"])

    def phase_times_s(self, phase: str) -> list[float]:
        """Return the time of each repetition of a phase, from barrier to barrier, seconds."""
        return [float(step["phase_s"]) for step in self.told["steps"] if step["phase"] == phase]


class Runs:
    """Simulated runs in a folder.

    Parameters
    ----------
    folder : Path
    seed : int
        Seed of the model.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed

    def variant(self, machine: str, **settings: float) -> str:
        """Write a model that differs from an installed one.

        Parameters
        ----------
        machine : str
            Name of a model.
        **settings
            Values by key; the model has these keys.

        Returns
        -------
        str
            Its path, for `simulate`.
        """
        text = find_model(machine).read_text(encoding="utf-8")
        for key, value in settings.items():
            text, found = re.subn(rf"(?m)^{key} = [0-9.]+", f"{key} = {value:g}", text)
            assert found == 1, f"{machine} has no line with {key}"
        told = "-".join([machine, *(f"{key}-{value:g}" for key, value in settings.items())])
        path = self._folder / f"{told}.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def simulate(self, pattern: str, machine: str, *options: str, other: int = 0) -> Simulated:
        """Simulate a pattern with ``ensio simulate``.

        Parameters
        ----------
        pattern, machine : str
            Names of a pattern and of a model, or the path of a model.
        *options : str
            Further options of the command.
        other : int
            Number of an independent run with the same seed, such as one on a second file system.
        """
        words = [pattern, Path(machine).stem, *(word.strip("-") for word in options)]
        name = "-".join([*words, *([str(other)] if other else [])])
        path = str(self._folder / name)
        command = [sys.executable, "-m", "ensembles.cli.main", "simulate", pattern, "--fs", machine, *options]
        command += ["--seed", str(self._seed + _OTHER * other), "-o", path, "--json"]
        print(f"simulating {name}", file=sys.stderr, flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return Simulated(path, json.loads(done.stdout))
