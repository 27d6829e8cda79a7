"""The exchangeable units of a comparison: runs, or blocks if each group is a single run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.comparison.dependent_blocks import FEWEST_BLOCKS, make_blocks, scaled
from ensembles.statistics.samples.counted_durations import CountedDurations


@dataclass(frozen=True)
class Kind:
    """One kind of calls in all runs.

    Attributes
    ----------
    groups : sequence of sequences of CountedDurations
        The runs of each group; the others are compared with the first group.
    op, layer : str or None
        Operation and layer, for texts only.
    unit : str
        What the phases of the samples are, for texts; ``""``: calls are not divided.
    """

    groups: Sequence[Sequence[CountedDurations]]
    op: str | None = None
    layer: str | None = None
    unit: str = "phases"


RUNS = "runs"


@dataclass(frozen=True)
class ExchangeableUnits:
    """Units that are permuted.

    Attributes
    ----------
    counts : ndarray of float64, shape (u, BIN_COUNT)
        Histogram of each unit.
    group : ndarray of int64, shape (u,)
        Group of each unit.
    what : str
        Name of the units in texts.
    memory : float or None
        Integrated autocorrelation time, in phases.
    spread : float
        Factor by which standard errors exceed those of independent units.
    """

    counts: np.ndarray
    group: np.ndarray
    what: str
    memory: float | None = None
    spread: float = 1.0

    @property
    def sizes(self) -> list[int]:
        """Number of units of each group."""
        sizes: list[int] = np.bincount(self.group).tolist()
        return sizes

    @property
    def are_blocks(self) -> bool:
        """Whether units are blocks of single runs with known pieces."""
        return self.what.startswith("blocks")

    @property
    def are_trusted(self) -> bool:
        """Whether units are independent, and enough for an interval."""
        if self.what == RUNS:
            return sum(self.sizes) > len(self.sizes)
        return self.are_blocks and min(self.sizes) >= FEWEST_BLOCKS


def choose_units(groups: Sequence[Sequence[CountedDurations]], unit: str) -> ExchangeableUnits:
    """Choose runs as units if a group has several, otherwise blocks of each run.

    Parameters
    ----------
    groups : sequence of sequences of CountedDurations
    unit : str
        What the phases of the samples are, for texts; ``""``: calls are not divided.

    Returns
    -------
    ExchangeableUnits
    """
    if max(len(group) for group in groups) > 1:
        runs = [sample.counts[None].astype(np.float64) for group in groups for sample in group]
        return ExchangeableUnits(
            scaled(runs), np.repeat(np.arange(len(groups)), [len(group) for group in groups]), RUNS
        )
    blocks = make_blocks([group[0] for group in groups])
    known = unit and all(group[0].phases_known for group in groups)
    what = f"blocks of {unit}" if known else "runs whose phases are not known"
    group = np.repeat(np.arange(len(groups)), [len(run) for run in blocks.counts])
    return ExchangeableUnits(scaled(blocks.counts), group, what, blocks.memory, blocks.spread)
