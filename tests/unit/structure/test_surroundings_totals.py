"""Totals of the samples of the kernel's counters."""

import numpy as np
import pytest

from ensembles.model.surroundings import COLUMNS, UNKNOWN, SurroundingsTable
from ensembles.structure.surroundings import summarize_surroundings

S = 10**9


def table(**columns: list[int]) -> SurroundingsTable:
    count = len(next(iter(columns.values())))
    made = {name: np.full(count, UNKNOWN) for name in COLUMNS}
    return SurroundingsTable(made | {"rank": [0] * count, "time": [n * S for n in range(count)]} | columns)


def test_no_samples_have_no_totals() -> None:
    assert summarize_surroundings(SurroundingsTable.empty()) is None


def test_counters_of_processes_are_added_up_from_first_to_last_sample() -> None:
    rank = [0, 0, 0, 1, 1]
    totals = summarize_surroundings(table(rank=rank, written_by_calls=[100, 110, 150, 1000, 1007]))
    assert totals is not None
    assert totals.process["written_by_calls"] == 57
    assert totals.process["read_by_calls"] == 0
    assert totals.samples == 5
    assert totals.network == {}
    assert not totals.is_notable


def test_levels_are_the_largest_and_their_share_is_of_usable_memory() -> None:
    totals = summarize_surroundings(
        table(dirty_bytes=[10, -1, 30], available_bytes=[90, -1, 270], writeback_bytes=[4, -1, 2])
    )
    assert totals is not None
    assert (totals.dirty_bytes, totals.writeback_bytes) == (30, 4)
    assert totals.dirty_share == pytest.approx(0.1)
    assert totals.is_notable


def test_pressure_is_that_of_the_node_with_the_largest_share() -> None:
    totals = summarize_surroundings(
        table(
            rank=[0, 0, 0, 1, 1],
            time=[0, S, 4 * S, 0, 2 * S],
            some_us=[500, UNKNOWN, 400_500, 0, 1_000_000],
            full_us=[0, UNKNOWN, 400_000, 0, 0],
        )
    )
    assert totals is not None
    assert totals.io_some_share == pytest.approx(0.5)
    assert totals.io_full_share == pytest.approx(0.1)
    assert totals.cgroup_some_share is None
    assert totals.is_notable


def test_one_sample_has_no_share() -> None:
    totals = summarize_surroundings(table(some_us=[1], full_us=[1]))
    assert totals is not None
    assert totals.io_some_share is None


def test_a_counter_that_fell_does_not_count() -> None:
    totals = summarize_surroundings(table(nfs_retransmissions=[5, 2, 3], nfs_reads=[1, 2, 9]))
    assert totals is not None
    assert totals.network == {"nfs_reads": 8, "nfs_retransmissions": 1}
    assert totals.is_notable


def test_rises_are_between_samples_of_one_task_that_know_the_counter() -> None:
    rises = table(rank=[0, 0, 0, 1], read_calls=[1, UNKNOWN, 4, 9]).rises("read_calls")
    assert [column.tolist() for column in rises] == [[0], [0], [2 * S], [3]]


def test_a_table_for_pandas_has_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    frame = table(dirty_bytes=[10, UNKNOWN]).to_pandas()
    assert frame["dirty_bytes"].iloc[0] == 10
    assert frame["dirty_bytes"].iloc[1] is pandas.NA
    assert "rank" in frame


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no column 'dirt'"):
        _ = table(dirty_bytes=[1]).dirt
