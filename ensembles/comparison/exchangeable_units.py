"""The exchangeable units of a comparison: runs, or blocks of a run where each group is a single run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.comparison.dependent_blocks import FEWEST_BLOCKS, make_blocks, scaled
from ensembles.statistics.samples.counted_durations import CountedDurations


@dataclass(frozen=True)
class Kind:
    """One kind of calls of all runs.

    Attributes
    ----------
    groups : sequence of sequences of Sample
        The runs of each group; the first group is what the others are compared with.
    op, layer : str or None
        What kind of calls these are; it is only told.
    unit : str
        What the phases of the samples are, for the text; ``""``: nothing tells calls apart.
    """

    groups: Sequence[Sequence[CountedDurations]]
    op: str | None = None
    layer: str | None = None
    unit: str = "phases"


RUNS = "runs"


@dataclass(frozen=True)
class ExchangeableUnits:
    """What is permuted: histograms (u, BIN_COUNT), the group of each (u,), what they are, for how many
    phases these remember themselves, and by which factor standard errors are larger than they tell."""

    counts: np.ndarray
    group: np.ndarray
    what: str
    memory: float | None = None
    spread: float = 1.0

    @property
    def sizes(self) -> list[int]:
        return np.bincount(self.group).tolist()

    @property
    def are_blocks(self) -> bool:
        """Whether they are blocks of single runs, and it is known what of."""
        return self.what.startswith("blocks")

    @property
    def are_trusted(self) -> bool:
        """Whether they are known to be independent, and enough for an interval."""
        if self.what == RUNS:
            return sum(self.sizes) > len(self.sizes)
        return self.are_blocks and min(self.sizes) >= FEWEST_BLOCKS


def choose_units(groups: Sequence[Sequence[CountedDurations]], unit: str) -> ExchangeableUnits:
    """Runs, if a group has several; else blocks of the run of each group.

    Parameters
    ----------
    groups : sequence of sequences of Sample
    unit : str
        What the phases of the samples are, for the text; ``""``: nothing tells calls apart.
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
