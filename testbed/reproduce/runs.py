"""Simulated runs of the papers' workloads, with the sizes of the papers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import ensembles
from ensembles.run.run import Run


@dataclass(frozen=True)
class Simulated:
    """A run, and what ``ensio simulate`` told about it."""

    path: str
    told: dict

    @cached_property
    def run(self) -> Run:
        """The run, opened."""
        return ensembles.open(self.path)

    @property
    def span_s(self) -> float:
        """From the first call to the end of the last."""
        return float(self.told["span_s"])

    def phase_times_s(self, phase: str) -> list[float]:
        """How long each repetition of a phase took, from barrier to barrier."""
        return [float(step["phase_s"]) for step in self.told["steps"] if step["phase"] == phase]


class Runs:
    """Makes runs in a folder.

    Parameters
    ----------
    folder : Path
    seed : int
        Of the model.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed

    def simulate(self, pattern: str, machine: str, *options: str) -> Simulated:
        """One run by ``ensio simulate``, as anybody would make it."""
        name = "-".join([pattern, machine, *(word.strip("-") for word in options)])
        path = str(self._folder / name)
        command = [sys.executable, "-m", "ensembles.cli.main", "simulate", pattern, "--fs", machine, *options]
        command += ["--seed", str(self._seed), "-o", path, "--json"]
        print(f"simulating {name}", file=sys.stderr, flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return Simulated(path, json.loads(done.stdout))
