"""Distinct values of an ensemble with their multiplicities by phase, for resampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.levels import MOST_DENSE
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_low_ns

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_EXACT = 2 * MOST_DENSE
"""Up to this number of distinct durations, each is an atom."""

MOST_GROUPS = MOST_DENSE
"""More phases are put into this number of random groups before resampling."""

_NARROW_BINS = 48
"""Durations within fewer bins are divided into finer cells, if single durations are known."""


@dataclass(frozen=True, eq=False)
class WeightedValues:
    """Values (atoms) with multiplicities."""

    value_s: np.ndarray  # Seconds, increasing; shape (m,)
    # low_s, high_s: Range of the durations that an atom represents; both are ``value_s`` if it is exact
    low_s: np.ndarray
    high_s: np.ndarray  # shape (m,)
    # group, atom, count: Number of calls of an atom in a group: a phase or, if there are many, several phases
    group: np.ndarray
    atom: np.ndarray  # shape (k,)
    count: np.ndarray  # shape (k,)
    groups: int  # Number of groups
    phases: int  # Number of phases; 0: unknown
    # Step of the clock; a duration represents all that are nearer to it than to the next tick
    step_s: float = 0.0

    @classmethod
    def from_sample(cls, data: CountedDurations | WeightedValues) -> WeightedValues:
        """Make one atom for each bin of a sample.

        The atoms have the exact mean and variance of the sample, if these are known.
        """
        if isinstance(data, WeightedValues):
            return data
        used = np.unique(data.bin)
        edges_ns = np.append(bin_low_ns().astype(np.float64), 2.0**64)
        shortest_s, longest_s = data.min_s.min(initial=np.inf), data.max_s.max(initial=0.0)
        low_s = np.clip(edges_ns[used] * 1e-9, shortest_s, longest_s)
        high_s = np.clip((edges_ns[used + 1] - 1) * 1e-9, shortest_s, longest_s)
        atom = np.searchsorted(used, data.bin)
        phase = data.group
        value_s = (low_s + high_s) / 2
        exact = data.mean_and_variance
        if exact is not None:
            value_s = _matched(value_s, np.bincount(atom, data.count, len(used)), *exact)
        phases = len(data.phase) if data.phases_known else 0
        group, groups = _grouped(phase, len(data.phase))
        return cls(value_s, low_s, high_s, group, atom, data.count, groups, phases, data.resolution_s)

    @classmethod
    def from_durations(
        cls, durations_s: np.ndarray, phase: np.ndarray | None, sample: CountedDurations
    ) -> WeightedValues:
        """Make atoms of known single durations.

        Atoms are exact if durations are few, and finer than bins if the durations fill only a few bins.
        """
        few = len(durations_s) <= MOST_EXACT
        if few or np.ptp(sample.bin) >= _NARROW_BINS:
            if not few:
                return cls.from_sample(sample)
            value_s, atom = np.unique(durations_s, return_inverse=True)
            low_s = high_s = value_s
        else:
            shortest_s, longest_s = sample.min_s.min(), sample.max_s.max()
            edges_s = np.linspace(shortest_s, longest_s, MOST_EXACT + 1)
            cell = np.clip(np.searchsorted(edges_s, durations_s, side="right") - 1, 0, MOST_EXACT - 1)
            used, atom = np.unique(cell, return_inverse=True)
            low_s, high_s = edges_s[used], edges_s[used + 1]
            value_s = np.bincount(atom, durations_s) / np.bincount(atom)
        place = np.zeros(len(durations_s), np.int64)
        if phase is not None:
            place = np.searchsorted(sample.phase, phase)
        group, groups = _grouped(place, len(sample.phase))
        entry, count = np.unique(group * len(value_s) + atom.reshape(-1), return_counts=True)
        phases = 0 if phase is None else len(sample.phase)
        group, atom = np.divmod(entry, max(len(value_s), 1))
        return cls(value_s, low_s, high_s, group, atom, count, groups, phases, sample.resolution_s)

    @property
    def by_phases(self) -> bool:
        """Whether phases are resampled; with one phase, or unknown ones, calls are."""
        return self.phases > 1

    @cached_property
    def total(self) -> np.ndarray:
        """Number of calls of each atom: float64, shape (m,)."""
        return np.bincount(self.atom, self.count, len(self.value_s))

    @property
    def n(self) -> int:
        """Number of calls."""
        return int(self.count.sum())

    @cached_property
    def table(self) -> csr_array:
        """Number of calls by group and atom: float64, shape (groups, m)."""
        from scipy.sparse import csr_array

        shape = (self.groups, len(self.value_s))
        return csr_array((self.count.astype(np.float64), (self.group, self.atom)), shape=shape)

    @property
    def units(self) -> int:
        """Number of independent units: groups of phases, or calls."""
        return self.groups if self.by_phases else self.n


def _matched(value_s: np.ndarray, weight: np.ndarray, mean_s: float, variance_s2: float) -> np.ndarray:
    """Shift and scale values to a given mean and variance."""
    total = weight.sum()
    middle = weight @ value_s / total
    variance = weight @ (value_s - middle) ** 2 / total
    stretch = np.sqrt(variance_s2 / variance) if variance > 0 else 1.0
    matched: np.ndarray = np.maximum(mean_s + (value_s - middle) * stretch, 0.0)
    return matched


def _grouped(phase: np.ndarray, phases: int) -> tuple[np.ndarray, int]:
    """Return the group of each entry's phase, and the number of groups."""
    if phases <= MOST_GROUPS:
        return phase, phases
    group_of = np.random.default_rng(0).permutation(phases) % MOST_GROUPS
    return group_of[phase], MOST_GROUPS
