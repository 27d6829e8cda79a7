"""Bytes by offset, time and rank add up to those of the calls, in whatever parts the calls come."""

from __future__ import annotations

import numpy as np
import pytest
from arrays_of import arrays_of
from builders import make_events
from generated_events import CALLS, TASKS, events, parts_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.events import Call
from ensembles.summaries.offset_map import OffsetMap, WindowMap, transfer_layers

SPAN = (-(10**13), 2 * 10**13)


def with_offsets(whole, random: np.random.Generator):
    columns = {name: getattr(whole, name) for name in ("rank", "call", "start", "duration", "moved")}
    columns["offset"] = random.integers(-1, 2**45, len(whole)) >> random.integers(0, 45, len(whole))
    columns["file"] = random.integers(0, 2, len(whole))
    return make_events(columns, CALLS)


def filled(parts) -> OffsetMap:
    whole = OffsetMap(1, "posix", TASKS, SPAN)
    for part in parts:
        one = OffsetMap(1, "posix", TASKS, SPAN)
        one.add(part)
        whole.merge(one)
    return whole


@given(whole=events(least=1), seed=st.integers(0, 2**32))
def test_cells_add_up_to_the_bytes_of_the_calls(whole, seed) -> None:
    random = np.random.default_rng(seed)
    whole = with_offsets(whole, random)
    found = filled([whole])
    for op in ("read", "write"):
        of_op = np.array([call.op == op for call in CALLS])[whole.call]
        mine = of_op & (whole.file == 1) & (whole.moved > 0) & (whole.offset >= 0)
        moved = int(whole.moved[mine].sum())
        assert found.by_rank(op).sum() == moved
        assert found.by_time(op).sum() == moved
        by_rank = np.bincount(whole.rank[mine], whole.moved[mine].astype(float), TASKS)
        np.testing.assert_allclose(found.by_rank(op).sum(axis=1), by_rank)
    for parts in (parts_of(whole, random), [whole[:0], whole]):
        again = filled(parts)
        for name, column in arrays_of(found).items():
            np.testing.assert_array_equal(arrays_of(again)[name], column, name)
        assert (again.calls, again.without_offset) == (found.calls, found.without_offset)


@given(whole=events(least=1), seed=st.integers(0, 2**32))
def test_windows_add_up_to_the_whole(whole, seed) -> None:
    random = np.random.default_rng(seed)
    whole = with_offsets(whole, random)
    all_of_it = filled([whole])
    edges = np.unique([*SPAN, *random.integers(SPAN[0], SPAN[1], 3)])
    for op in ("read", "write"):
        moved = 0
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            window = WindowMap(1, "posix", TASKS, (low, high), (0, 2**46))
            window.add(whole)
            assert window.offset_edges[-1] == 2**46
            moved += int(window.by_time(op).sum())
        # Parts are rounded to whole bytes, and calls of no duration at an edge count once.
        assert abs(moved - int(all_of_it.by_time(op).sum())) <= len(whole) * len(edges)


def test_a_window_has_only_what_moved_in_it_and_when() -> None:
    columns = {
        "rank": np.array([0, 1, 1]),
        "call": np.array([0, 0, 0]),
        "file": np.array([1, 1, 1]),
        "offset": np.array([0, 768, 512]),
        "moved": np.array([512, 256, 64]),
        "start": np.array([0, 1024, 5000]),
        "duration": np.array([1536, 512, 10]),
    }
    window = WindowMap(1, "posix", 2, (1024, 2048), (0, 1024))
    window.add(make_events(columns, CALLS))
    found = window.by_time("write")
    cell = int(window.offset_edges[1])
    # A third of the first call, and all of the second; cells of time are 2 ns wide.
    assert found[:, : 512 // cell].sum() == pytest.approx(512 / 3, abs=1)
    assert found[:, 768 // cell :].sum() == 256
    assert found.sum() == pytest.approx(512 / 3 + 256, abs=1)
    assert np.flatnonzero(found.any(axis=1)).tolist() == list(range(256))


def test_bytes_lie_where_and_when_they_were_moved() -> None:
    columns = {
        "rank": np.array([0, 1]),
        "call": np.array([0, 1]),
        "file": np.array([1, 1]),
        "offset": np.array([0, 768]),
        "moved": np.array([512, 256]),
        "start": np.array([0, 512]),
        "duration": np.array([256, 512]),
    }
    found = OffsetMap(1, "posix", 2, (0, 1024))
    found.add(make_events(columns, CALLS))
    assert found.offset_edges[-1] == 1024
    cell = found.offset_edges[1]
    times = found.by_time("write").sum(axis=1)
    # Cells of time are 2 ns wide: the write lasts for the first 128 of 512.
    assert times[:128].tolist() == [4] * 128
    assert not times[129:].any()
    assert found.by_rank("write")[0, : 512 // cell].sum() == 512
    assert found.by_rank("read")[1, 768 // cell :].sum() == 256


def test_other_layers_and_unknown_offsets_are_left_out() -> None:
    calls = [Call("MPI_File_write", "mpiio", "write"), Call("write", "posix", "write")]
    columns = {
        "call": np.array([0, 1, 1]),
        "file": np.array([1, 1, 1]),
        "offset": np.array([0, 0, -1]),
        "moved": np.array([5, 5, 7]),
    }
    events_ = make_events(columns, calls)
    found = OffsetMap(1, "posix", 1, (0, 1))
    found.add(events_)
    assert (found.calls, found.without_offset, int(found.by_rank("write").sum())) == (1, 1, 5)
    assert transfer_layers(events_) == ["posix", "mpiio"]


def test_a_rank_beyond_the_tasks_is_refused() -> None:
    columns = {"rank": np.array([3]), "file": np.array([1]), "moved": np.array([1])}
    with pytest.raises(ValueError, match="rank 3"):
        OffsetMap(1, "posix", 2, (0, 1)).add(make_events(columns, CALLS))
