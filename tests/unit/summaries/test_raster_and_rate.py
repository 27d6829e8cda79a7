"""Raster and rate curve: areas are true."""

from __future__ import annotations

import numpy as np
import pytest
from generated_events import CALLS, TASKS, events, events_of, parts_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.errors import EnsioError
from ensembles.model.events import OPS, Call, Events
from ensembles.summaries.raster import CLASSES, Raster
from ensembles.summaries.rate import DIRECTIONS, RateCurve
from ensembles.summaries.runtotals import RunTotals


@given(whole=events(), rows=st.integers(1, 9))
def test_row_sums_of_the_raster_are_the_time_in_each_operation(whole: Events, rows: int) -> None:
    raster = Raster(TASKS, rows=rows, cells=32)
    raster.add(whole)
    assert raster.rows <= rows
    assert raster.tasks_of_row.sum() == TASKS
    outer = whole[whole.depth == 0]
    for_io = np.array([call.op == "wait" and not call.waits_for_tasks for call in outer.calls])[outer.call]
    for number, (name, ops) in enumerate(CLASSES.items()):
        in_class = np.isin(outer.op, [OPS.index(op) for op in ops]) & ~for_io
        in_class = for_io if name == "io wait" else in_class
        for row in range(raster.rows):
            in_row = outer.rank // raster.ranks_per_row == row
            assert raster.time_ns[number, row].sum() == outer.duration[in_class & in_row].sum()


@given(whole=events())
def test_integral_of_the_rate_is_the_bytes_moved(whole: Events) -> None:
    curve = RateCurve(cells=32)
    curve.add(whole)
    for direction, bit in zip(DIRECTIONS, (1, 2), strict=True):
        data = (whole.op == OPS.index(direction)) & (whole.moved > 0) & (whole.carried & bit == 0)
        moved = int(whole.moved[data].sum())
        assert curve.total_bytes(direction) == moved
        width_s = np.diff(curve.edges_ns) * 1e-9
        assert (curve.rate_bytes_per_s(direction) * width_s).sum() == pytest.approx(moved, rel=1e-9)


@given(whole=events(least=1))
def test_axis_covers_the_events_with_cells_as_narrow_as_can_be(whole: Events) -> None:
    raster = Raster(TASKS, cells=32)
    raster.add(whole)
    low, high = int(whole.start.min()), int((whole.start + np.maximum(whole.duration, 1)).max())
    edges = raster.edges_ns
    assert raster.extent_ns == (low, high)
    assert edges[0] <= low < edges[1]
    assert edges[-2] < high <= edges[-1]
    assert len(edges) - 1 <= 32
    half = raster.cell_ns // 2
    assert raster.cell_ns == 1 or (high - 1) // half - low // half + 1 > 32


def test_share_of_a_pixel_is_time_over_tasks_and_time() -> None:
    # Tasks 0 and 1 share a row; task 2 is alone in the last. 0 writes all of the time, 2 reads half of it.
    whole = events_of(start=[0, 32], duration=[64, 32], rank=[0, 2], call=[0, 1])
    raster = Raster(3, rows=2, cells=64)
    raster.add(whole)
    assert raster.ranks_per_row == 2
    assert raster.shares("write").mean(axis=1).tolist() == [0.5, 0.0]
    assert raster.shares("read").mean(axis=1).tolist() == [0.0, 0.5]
    assert raster.tasks_inside("write").tolist() == [1.0] * 64
    assert raster.present() == ["write", "read"]


def test_calls_inside_other_calls_are_not_counted_twice() -> None:
    whole = events_of(start=[0, 2], duration=[10, 6], call=[0, 0], moved=[100, 100], depth=[0, 1])
    raster, curve, totals = Raster(1), RateCurve(), RunTotals()
    for summary in (raster, curve, totals):
        summary.add(whole)
    assert raster.time_ns.sum() == 10
    assert curve.total_bytes("write") == totals.bytes_written == 100


@given(whole=events(), seed=st.integers(0, 2**32))
def test_totals_of_a_run_are_those_of_its_rate_curve_and_of_a_plain_loop(whole: Events, seed: int) -> None:
    random = np.random.default_rng(seed)
    curve, totals, other = RateCurve(), RunTotals(), RunTotals()
    curve.add(whole)
    for part in parts_of(whole, random):
        (totals if random.random() < 0.5 else other).add(part)
    totals.merge(other)
    expected = {"read": 0, "write": 0}
    bits = {"read": 1, "write": 2}
    for number, moved, carried in zip(whole.call, whole.moved.tolist(), whole.carried.tolist(), strict=True):
        op = CALLS[number].op
        if op in expected and not carried & bits[op]:
            expected[op] += max(moved, 0)
    assert (totals.bytes_read, totals.bytes_written) == (expected["read"], expected["write"])
    assert {name: curve.total_bytes(name) for name in DIRECTIONS} == expected


def test_bytes_count_in_the_outermost_call_that_moves_them() -> None:
    calls = (
        Call("MPI_File_write_all", "mpiio", "write"),
        Call("MPI_File_close", "mpiio", "close"),
        Call("pwrite", "posix", "write"),
        Call("pread", "posix", "read"),
    )
    # A collective write that reads before it writes, as data sieving does; then a close that writes 8 bytes.
    whole = events_of(
        call=[3, 2, 0, 2, 1],
        start=[1, 4, 0, 21, 20],
        duration=[2, 2, 10, 2, 5],
        moved=[64, 64, 32, 8, 0],
        depth=[1, 1, 0, 1, 0],
        carried=[2, 2, 0, 0, 0],
    )
    whole = Events(whole.columns, calls, whole.files)
    totals, curve = RunTotals(), RateCurve()
    totals.add(whole)
    curve.add(whole)
    assert (totals.bytes_read, totals.bytes_written) == (64, 32 + 8)
    assert (curve.total_bytes("read"), curve.total_bytes("write")) == (64, 32 + 8)
    layers = totals.layers.layers
    assert (layers["mpiio"].time_ns, layers["mpiio"].exclusive_ns) == (15, 15 - 6)


def test_time_in_io_counts_no_call_twice_and_no_waiting() -> None:
    calls = (
        Call("MPI_File_write", "mpiio", "write"),
        Call("pwrite", "posix", "write"),
        Call("w", "mpi", "wait"),
    )
    whole = events_of(start=[2, 0, 20], duration=[6, 10, 5], call=[1, 0, 2], depth=[1, 0, 0])
    totals = RunTotals()
    totals.add(Events(whole.columns, calls, whole.files))
    assert totals.io_time_ns == 10


def test_failed_and_empty_calls_move_no_bytes() -> None:
    curve = RateCurve()
    curve.add(events_of(start=[0, 5], duration=[10, 10], call=[0, 1], moved=[-1, 0]))
    assert curve.total_bytes("write") == curve.total_bytes("read") == 0
    assert len(curve.edges_ns) == 1
    assert curve.active_s("write") == 0


def test_rate_of_one_write_is_its_bytes_over_its_duration() -> None:
    curve = RateCurve()
    curve.add(events_of(start=[1 << 20], duration=[1 << 30], call=[0], moved=[1 << 30]))
    inner = curve.rate_bytes_per_s("write")[1:-1]
    np.testing.assert_allclose(inner, 1e9, rtol=1e-6)
    assert curve.active_s("write") == pytest.approx((1 << 30) * 1e-9, rel=2e-3)


def test_summaries_without_events_are_empty_and_not_wrong() -> None:
    raster, curve = Raster(4), RateCurve()
    raster.add(events_of(start=np.empty(0)))
    curve.add(events_of(start=np.empty(0)))
    assert raster.present() == []
    assert raster.extent_ns == (0, 0)
    assert raster.shares("write").shape == (4, 0)
    assert curve.rate_bytes_per_s("read").shape == (0,)


def test_rank_beyond_the_tasks_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 4, but the run has 4 tasks"):
        Raster(4).add(events_of(start=[0], rank=[4]))


@pytest.mark.parametrize(("start", "duration"), [(0, -1), (2**63 - 1, 2)])
def test_damaged_time_stamps_are_told_in_one_sentence(start: int, duration: int) -> None:
    with pytest.raises(EnsioError, match="time stamps of this run are damaged"):
        Raster(1).add(events_of(start=[start], duration=[duration]))


def test_every_operation_has_a_class() -> None:
    assert sorted(op for ops in CLASSES.values() for op in ops) == sorted(OPS)
    assert len(CALLS)


def test_waits_for_io_are_not_waits_for_tasks() -> None:
    calls = Call("ncmpi_wait_all", "pnetcdf", "wait"), Call("MPI_Barrier", "mpisync", "wait")
    columns = {"rank": [0, 0], "thread": [0, 0], "call": [0, 1], "depth": [0, 0]}
    raster = Raster(1)
    raster.add(Events.partly(columns | {"start": [0, 100], "duration": [70, 30]}, calls, ("",)))
    assert raster.present() == ["io wait", "wait"]
    spent = dict(zip(CLASSES, raster.time_ns.sum(axis=(1, 2)).tolist(), strict=True))
    assert (spent["io wait"], spent["wait"]) == (70, 30)
