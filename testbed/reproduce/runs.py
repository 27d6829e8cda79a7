"""Simulated runs of the published workloads with the published sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import ensembles
from ensembles.api.run import Run

_OTHER = 1_000_003
"""Distance of the seeds of independent runs."""


@dataclass(frozen=True)
class Simulated:
    """A simulated run and the output of ``ensio simulate --json``."""

    path: str  # Run directory
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
    """Simulated runs in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed

    def simulate(self, pattern: str, machine: str, *options: str, other: int = 0) -> Simulated:
        """Simulate a pattern with ``ensio simulate``."""
        words = [pattern, machine, *(word.strip("-") for word in options)]
        name = "-".join([*words, *([str(other)] if other else [])])
        path = str(self._folder / name)
        command = [sys.executable, "-m", "ensembles.cli.main", "simulate", pattern, "--fs", machine, *options]
        command += ["--seed", str(self._seed + _OTHER * other), "-o", path, "--json"]
        sys.stderr.write(f"simulating {name}, seed {self._seed}\n")  # in one piece, as seeds run side by side
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return Simulated(path, json.loads(done.stdout))
