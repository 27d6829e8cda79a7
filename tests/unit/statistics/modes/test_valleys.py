"""Antimodes are found where they are deep, and a density without them has few."""

from itertools import pairwise

import numpy as np
import pytest

from ensembles.statistics.modes.clusters import LEVEL, Scales, find_antimodes
from ensembles.statistics.modes.density import DEPTH_RATIO, LEAST_CALLS, LEAST_SHARE, LogCells


def cells_of(counts, width=0.1):
    edges = width * np.arange(len(counts) + 1.0)
    return LogCells(edges, np.asarray(counts, np.int64), np.zeros(0, np.int64), 1e-9)


def test_evidence_is_the_difference_in_poisson_standard_errors():
    counts = np.repeat([30, 300, 30, 300, 30], 8)
    scales = Scales(0.1 * np.arange(41.0), counts, 6)
    rng = np.random.default_rng(1)
    drawn = rng.poisson(300, (400, 40)).astype(float)
    _, kernel, squares, penalty = scales.kernels[0]
    density = counts @ kernel
    middle = slice(10, 30)
    flat = (np.full(40, 300) @ kernel * squares)[middle]
    assert np.allclose((drawn @ kernel).var(axis=0)[middle], flat, rtol=0.3)
    found = scales.evidence(counts[None].astype(float))[0, 0]
    place = int(found.argmax())
    assert 16 <= place < 24
    peak = density.max()
    expected = (peak - density[place]) / np.sqrt((peak + density[place]) * squares[place]) - penalty
    assert found[place] == pytest.approx(expected, rel=0.02)


def test_small_modes_and_shallow_valleys_do_not_count():
    for ratio, clusters in ((DEPTH_RATIO - 0.02, 1), (DEPTH_RATIO + 0.1, 2)):
        counts = np.full(60, 100_000)
        counts[20:40] = int(100_000 / ratio)
        assert len(find_antimodes(cells_of(counts))[0]) == 2 * clusters - 1
    for share, clusters in ((0.5, 1), (3, 2)):
        counts = np.zeros(30, np.int64)
        counts[5], counts[25] = 100_000, int(share * LEAST_SHARE * 100_000)
        assert counts[25] > LEAST_CALLS
        assert len(find_antimodes(cells_of(counts))[0]) == 2 * clusters - 1


def test_intervals_alternate_and_chances_fall_with_depth():
    chances = []
    for ratio in (1, 2, 4, 8):
        spans, chance = find_antimodes(cells_of(np.repeat([80, 80 // ratio, 80], 10)))
        assert all(low < high for low, high in spans)
        assert all(left[1] <= right[0] for left, right in pairwise(spans))
        assert (len(spans) == 3) == (chance <= LEVEL)
        chances.append(chance)
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > LEVEL > 1e-6 > chances[-1]
