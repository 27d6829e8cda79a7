"""The units of a comparison: runs, or blocks if each group is a single run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ensembles.comparison.dependent_blocks import FEWEST_BLOCKS, make_blocks, scaled
from ensembles.statistics.samples.counted_durations import CountedDurations


@dataclass(frozen=True)
class Kind:
    """One kind of calls in all runs."""

    # The runs of each group; the others are compared with the first group
    groups: Sequence[Sequence[CountedDurations]]
    # op, layer: Operation and layer, for texts only
    op: str | None = None
    layer: str | None = None
    unit: str = "phases"  # What the phases of the samples are, for texts; ``""``: calls are not divided
    is_main: bool = True  # Whether they take enough of the time in I/O for advice on more runs


RUNS = "runs"


@dataclass(frozen=True)
class Units:
    """Runs as wholes, or blocks of single runs."""

    counts: np.ndarray  # float64, shape (u, BIN_COUNT): Histogram of each unit
    run: np.ndarray  # int64, shape (u,): Run of each unit
    group: np.ndarray  # int64, shape (r,): Group of each run
    what: str  # Name of the units in texts
    memory: float | None = None  # Integrated autocorrelation time, in phases
    spread: float = 1.0  # Factor by which standard errors exceed those of independent units

    @property
    def group_of_units(self) -> np.ndarray:
        """Group of each unit: int64, shape (u,)."""
        found: np.ndarray = self.group[self.run]
        return found

    @property
    def members(self) -> np.ndarray:
        """1.0 where a unit belongs to a run: float64, shape (r, u)."""
        found: np.ndarray = (self.run == np.arange(len(self.group))[:, None]).astype(np.float64)
        return found

    @property
    def sizes(self) -> list[int]:
        """Number of units of each group."""
        sizes: list[int] = np.bincount(self.group_of_units).tolist()
        return sizes

    def of_groups(self, *groups: int) -> Units:
        """Return the units of some groups, which are numbered anew in this order."""
        runs = np.concatenate([np.flatnonzero(self.group == g) for g in groups])
        number = np.repeat(np.arange(len(groups)), [(self.group == g).sum() for g in groups])
        chosen = [np.flatnonzero(self.run == run) for run in runs]
        again = np.repeat(np.arange(len(runs)), [len(units) for units in chosen])
        counts = self.counts[np.concatenate(chosen)]
        return replace(self, counts=counts, run=again, group=number)

    @property
    def are_blocks(self) -> bool:
        """Whether units are blocks of single runs with known pieces."""
        return self.what.startswith("blocks")

    @property
    def are_enough(self) -> bool:
        """Whether units show how far the values of runs are uncertain."""
        if self.what == RUNS:
            return len(self.group) > int(self.group.max()) + 1
        return self.are_blocks and min(self.sizes) >= FEWEST_BLOCKS


def choose_units(groups: Sequence[Sequence[CountedDurations]], unit: str) -> Units:
    """Choose runs as units if a group has several, otherwise blocks of each run."""
    group = np.repeat(np.arange(len(groups)), [len(runs) for runs in groups])
    if max(len(runs) for runs in groups) > 1:
        runs = [sample.counts[None].astype(np.float64) for runs in groups for sample in runs]
        return Units(scaled(runs), np.arange(len(runs)), group, RUNS)
    blocks = make_blocks([runs[0] for runs in groups])
    known = unit and all(runs[0].phases_known for runs in groups)
    what = f"blocks of {unit}" if known else "runs whose phases are not known"
    run = np.repeat(group, [len(counts) for counts in blocks.counts])
    return Units(scaled(blocks.counts), run, group, what, blocks.memory, blocks.spread)
