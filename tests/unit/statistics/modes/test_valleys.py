"""Valleys are found as they would be by looking at all blocks one by one."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ensembles.statistics.modes.density import (
    DEPTH_RATIO,
    LEAST_CALLS,
    LEAST_SHARE,
    CellBlocks,
    chain,
    evidence,
)


def some_blocks(seed, cells=14, calls=400):
    rng = np.random.default_rng(seed)
    shape = 1 + 4 * (np.arange(cells) % 5 == seed % 5)
    counts = rng.multinomial(calls, shape / shape.sum())
    edges = np.cumsum(np.append(0.0, rng.uniform(0.5, 1.5, cells)))
    return CellBlocks.from_counts(counts, edges), counts, edges


def test_blocks_are_runs_of_cells_with_their_calls_and_widths():
    blocks, counts, edges = some_blocks(1)
    for start, end, calls, width in zip(blocks.start, blocks.end, blocks.calls, blocks.width, strict=True):
        assert calls == counts[start:end].sum()
        assert width == pytest.approx(edges[end] - edges[start])
    lengths = blocks.end - blocks.start
    assert {1, 2, 3, 4, 6, 8, 12} == set(lengths.tolist())
    assert len(np.unique(np.stack([blocks.start, blocks.end]), axis=1).T) == len(lengths)


def test_evidence_is_that_of_the_binomial_likelihood_ratio():
    blocks, counts, _ = some_blocks(2)
    total = counts.sum()
    found = evidence(blocks, total)
    shown = np.argwhere(np.isfinite(found.before))
    assert len(shown) > 20
    for h, v in shown[::7]:
        high, low = found.high[h], found.low[v]
        a, b = int(blocks.calls[high]), int(blocks.calls[low])
        odds = DEPTH_RATIO * blocks.width[high] / blocks.width[low]
        ratio = stats.binom.logpmf(a, a + b, a / (a + b)) - stats.binom.logpmf(a, a + b, odds / (1 + odds))
        expected = np.sqrt(2 * ratio) - np.sqrt(2 * np.log(np.e * total / (a + b)))
        assert found.before[h, v] == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert blocks.end[high] <= blocks.start[low]


@pytest.mark.parametrize("seed", range(6))
def test_chain_is_as_long_as_the_longest_of_all_alternating_rows(seed):
    blocks, counts, _ = some_blocks(seed, cells=9, calls=300)
    total, threshold = counts.sum(), -1.0
    found = evidence(blocks, total)
    row = chain(found, threshold)

    pairs = {}
    for h, v in itertools.product(range(len(found.high)), range(len(found.low))):
        for side, score in (("before", found.before[h, v]), ("after", found.after[h, v])):
            if score >= threshold:
                pairs.setdefault((side, int(found.high[h]), int(found.low[v])), float(score))

    def longest(high):
        lows = [low for side, other, low in pairs if side == "before" and other == high]
        nexts = {high_ for low in lows for side, high_, other in pairs if side == "after" and other == low}
        return 1 + max((longest(high_) for high_ in nexts), default=0)

    expected = max(longest(int(high)) for high in found.high)
    assert (len(row) + 1) // 2 == (expected if expected > 1 else 0)
    for place in range(0, len(row) - 2, 2):
        assert ("before", row[place], row[place + 1]) in pairs
        assert ("after", row[place + 2], row[place + 1]) in pairs


def test_small_modes_and_shallow_valleys_do_not_count():
    edges = np.arange(31, dtype=float)
    counts = np.full(30, 10_000)
    counts[10:20] = int(10_000 / (DEPTH_RATIO - 0.01))
    assert not np.isfinite(evidence(CellBlocks.from_counts(counts, edges), counts.sum()).deepest())
    counts = np.zeros(30, np.int64)
    counts[5], counts[25] = 100_000, int(0.8 * LEAST_SHARE * 100_000)
    assert counts[25] > LEAST_CALLS
    assert not np.isfinite(evidence(CellBlocks.from_counts(counts, edges), counts.sum()).deepest())
    counts[25] = int(2 * LEAST_SHARE * 100_000)
    assert evidence(CellBlocks.from_counts(counts, edges), counts.sum()).deepest() > 5
