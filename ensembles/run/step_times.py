"""Time in I/O of each phase of a run, for tests on steps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.events import Events, is_io_of_calls
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.structure.phases.detect import Phases

if TYPE_CHECKING:
    from ensembles.run.run import Run

MOST_STEPS = 100
"""Runs with more phases get no test for each."""


class StepTimes(Summary):
    """A mergeable summary: time in the outermost I/O calls of each phase, summed over tasks."""

    columns = ("rank", "call", "depth", "start", "duration")
    added_up = ("time_ns",)

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self.time_ns = np.zeros(phases.count, np.int64)

    def add(self, chunk: Events) -> None:
        """Add events; those in no phase are left out."""
        phase = self._phases.phase_index(chunk)
        mine = np.flatnonzero(is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth == 0) & (phase > 0))
        np.add.at(self.time_ns, phase[mine] - 1, chunk.duration[mine])


def step_times_s(run: Run) -> list[float]:
    """Compute the time in I/O of each phase, s, summed over tasks, if there are at most `MOST_STEPS`."""
    phases = run.reading.phases_of_calls
    if phases is None or not 0 < phases.count <= MOST_STEPS:
        return []
    times = run.summarize(ignoring_run(partial(StepTimes, phases)))
    return [time_ns * 1e-9 for time_ns in times.time_ns.tolist()]
