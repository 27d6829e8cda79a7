"""Kinds of calls that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ensembles.statistics.sample import Sample


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

    groups: Sequence[Sequence[Sample]]
    op: str | None = None
    layer: str | None = None
    unit: str = "phases"
