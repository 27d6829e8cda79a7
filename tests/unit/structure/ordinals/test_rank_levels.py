"""The table of typical durations by rank, against sums by plain loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ensembles.structure.ordinals.numbering import RankLevels


def filled(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> RankLevels:
    """A table of parts, each of ranks, classes and logarithms."""
    table = RankLevels()
    for rank, number, log in parts:
        row, calls, levels = table.rows_for(rank, int(number.max()) + 1)
        np.add.at(calls, (row, number), 1)
        np.add.at(levels, (row, number), log)
        table.close()
    return table


def drawn(seed: int, ranks: int, calls: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(0, ranks, calls), random.integers(0, 9, calls), random.normal(size=calls)


def means(rank: np.ndarray, number: np.ndarray, log: np.ndarray) -> np.ndarray:
    """Means by plain loops, NaN where there is no call."""
    found = defaultdict(list)
    for key in zip(rank.tolist(), number.tolist(), log.tolist(), strict=True):
        found[key[:2]].append(key[2])
    ranks = sorted(set(rank.tolist()))
    return np.array([[np.mean(found[r, c]) if found[r, c] else np.nan for c in range(9)] for r in ranks])


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("cuts", [[], [100], [1, 2, 3, 150], list(range(10, 400, 10))])
def test_parts_are_the_whole(cuts: list[int], ascending: bool) -> None:
    rank, number, log = drawn(1, 30, 400)
    if ascending:
        order = np.argsort(rank, kind="stable")
        rank, number, log = rank[order], number[order], log[order]
    parts = list(zip(*(np.split(column, cuts) for column in (rank, number, log)), strict=True))
    expected = means(rank, number, log)
    table = filled(parts[: len(parts) // 2])
    table.merge(filled(parts[len(parts) // 2 :]))
    np.testing.assert_allclose(table.columns(np.arange(9)), expected, rtol=1e-12)
    np.testing.assert_array_equal(table.tasks(9), (~np.isnan(expected)).sum(axis=0))
    np.testing.assert_allclose(table.medians(np.arange(9)), np.nanmedian(expected, axis=0), rtol=1e-12)


def test_merging_leaves_the_other_table_as_it_is() -> None:
    first, other = filled([drawn(2, 3, 50)]), filled([drawn(3, 3, 50)])
    before = other.columns(np.arange(9)).copy()
    first.merge(other)
    row, calls, levels = first.rows_for(np.array([2]), 1)
    calls[row, 0], levels[row, 0] = 7, 9.0
    first.close()
    first.columns(np.arange(9))
    np.testing.assert_array_equal(other.columns(np.arange(9)), before)


def test_many_calls_of_a_class_are_counted() -> None:
    table = filled([(np.zeros(70_000, int), np.zeros(70_000, int), np.full(70_000, 2.0))])
    assert table.columns(np.array([0])).tolist() == [[2.0]]
