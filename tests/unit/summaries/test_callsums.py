"""Sums and spreading of chunks, in C and in NumPy: equal to each other, and to what plain loops say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from generated_events import CALLS, TASKS, events
from hypothesis import given
from hypothesis import strategies as st
from oracles import numpy_summaries

from ensembles import _compiled
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.summaries import calltable, kernels
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.kernels import Choice


def fresh(whole: Events) -> Events:
    """The same events, which remember nothing."""
    return Events(whole.columns, whole.calls, whole.files)


@given(whole=events(least=1))
def test_compiled_sums_equal_those_of_numpy_to_the_last_bit(whole: Events) -> None:
    mine = calltable.compute_call_sums(fresh(whole))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calltable._compiled, "sum_calls", numpy_summaries.sum_calls)
        theirs = calltable.compute_call_sums(fresh(whole))
    for name in mine.__slots__:
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), err_msg=name)


@given(whole=events(least=1))
def test_bytes_that_a_call_around_counts_are_left_out(whole: Events) -> None:
    sums = calltable.compute_call_sums(whole)
    rows = zip(whole.call.tolist(), whole.moved.tolist(), whole.carried.tolist(), strict=True)
    expected = Counter()
    for call, moved, carried in rows:
        bit = {"read": 1, "write": 2}.get(CALLS[call].op, 0)
        expected[call] += max(moved, 0) if not carried & bit else 0
    assert {call: int(sums.counted[call]) for call in sums.present.tolist()} == dict(expected)
    assert (sums.start_ns, sums.end_ns) == (whole.start.min(), whole.end.max())
    assert sums.deepest == whole.depth.max()


@given(whole=events(least=1))
def test_central_sums_are_equal_to_rounding(whole: Events) -> None:
    mean_ns = np.full(len(CALLS), whole.duration.mean())
    mine = calltable.central_sums(whole.call, whole.duration, mean_ns)
    theirs = numpy_summaries.central_sums(whole.call, whole.duration, mean_ns)
    spread = max(float(np.ptp(whole.duration)), 1.0)
    for power in (2, 3, 4):
        allowed = 1e-12 * len(whole) * spread**power
        np.testing.assert_allclose(mine[:, power - 2], theirs[:, power - 2], rtol=1e-12, atol=allowed)


@given(seed=st.integers(0, 10**6), different=st.sampled_from([1, 3, 1000, 2**63]))
def test_sizes_are_counted_by_layer_as_a_plain_loop_does(seed: int, different: int) -> None:
    random = np.random.default_rng(seed)
    calls = (*CALLS, Call("MPI_File_read", "mpiio", "read"))
    call = random.integers(0, len(calls), 2000).astype("u2")
    # Sizes that differ in high bits only meet in one place of a table of few.
    requested = random.integers(0, different, 2000).astype("u8") << np.uint64(random.integers(0, 2))
    names, layer_of = calltable.layers_of_transfers(calls)
    found: Counter[tuple[str, int]] = Counter()
    for layer, size, count in zip(*calltable.count_sizes(call, requested, layer_of), strict=True):
        found[names[layer], int(size)] += int(count)
    rows = zip(call.tolist(), requested.tolist(), strict=True)
    chosen = ((calls[number], size) for number, size in rows)
    assert found == Counter((each.layer, size) for each, size in chosen if each.op in ("read", "write"))


def test_numbers_without_an_entry_are_refused() -> None:
    call, eight = np.array([0, 7], "u2"), np.zeros(2, "i8")
    none, some = np.full(2, calltable._NO_LAYER, "u1"), np.zeros(2, "u8")
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        calltable.count_sizes(call, some, none)
    with pytest.raises(IndexError, match="event 1"):
        calltable.central_sums(call, eight, np.zeros(2))
    columns = {name: np.zeros(2, dtype) for name, dtype in COLUMNS.items()} | {"call": call}
    with pytest.raises(IndexError, match="event 1"):
        calltable.compute_call_sums(Events(columns, CALLS, [""]))


def test_arrays_that_do_not_fit_are_refused() -> None:
    two, three = np.zeros(2, "u2"), np.zeros(3, "i8")
    with pytest.raises(ValueError, match="same length"):
        _compiled.sum_powers(two, three, np.zeros(1), np.zeros(3))
    with pytest.raises(ValueError, match="a row for each call"):
        _compiled.sum_powers(two, three[:2], np.zeros(2), np.zeros(3))
    with pytest.raises(TypeError, match="call must have items of 2 bytes"):
        _compiled.sum_powers(three, three, np.zeros(2), np.zeros(6))
    with pytest.raises(TypeError, match="4 arrays"):
        _compiled.sum_powers(two, three)


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    """Of time or of bytes, of all calls or of some, by rank or not."""
    row_of_call = np.array([draw(st.integers(-1, 2)) for _ in CALLS], np.int32)
    bits = np.array([draw(st.integers(0, 3)) for _ in CALLS], np.uint8) if draw(st.booleans()) else None
    return Choice(row_of_call, draw(st.integers(0, 3)), draw(st.booleans()), bits, draw(st.integers(0, 4)))


@given(whole=events(least=1), choice=choices())
def test_calls_are_spread_as_numpy_does_it_to_the_last_bit(whole: Events, choice: Choice) -> None:
    extent = kernels.compute_extent(whole, choice)
    assert extent == numpy_summaries.compute_extent(whole, choice)
    low, high = extent or (0, 1)
    level = max((high - low).bit_length() - 3, 0)
    cells = (high >> level) - (low >> level) + 1
    mine, theirs = np.zeros((2, 3 + TASKS, cells), np.int64)
    kernels.spread_calls(whole, choice, level, low >> level, mine)
    numpy_summaries.spread_calls(whole, choice, level, low >> level, theirs)
    np.testing.assert_array_equal(mine, theirs)
    assert bool(mine.any()) <= (extent is not None)


@given(whole=events(least=1))
def test_time_in_rows_of_ranks_is_that_of_the_outermost_calls(whole: Events) -> None:
    choice = Choice(np.arange(len(CALLS), dtype=np.int32) * 4, ranks_per_row=2, outermost=True)
    low, high = kernels.compute_extent(whole, Choice(choice.row_of_call)) or (0, 1)
    level = max((high - low).bit_length(), 1)
    out = np.zeros((4 * len(CALLS), 2), np.int64)
    kernels.spread_calls(whole, choice, level, low >> level, out)
    for call in range(len(CALLS)):
        for row in range(4):
            mine = (whole.call == call) & (whole.rank // 2 == row) & (whole.depth == 0)
            assert out[4 * call + row].sum() == whole.duration[mine].sum()


def test_a_call_that_ends_before_it_starts_is_told() -> None:
    columns = {name: np.zeros(2, dtype) for name, dtype in COLUMNS.items()} | {"duration": np.array([4, -1])}
    chunk = Events(columns, CALLS, [""])
    with pytest.raises(EnsioError, match="ends before it starts"):
        kernels.compute_extent(chunk, Choice(np.zeros(len(CALLS), np.int32)))


def test_a_table_knows_the_files_of_chunks_with_different_dictionaries() -> None:
    columns = {name: np.zeros(3, dtype) for name, dtype in COLUMNS.items()} | {"file": np.array([0, 2, 2])}
    table, other = CallTable(), CallTable()
    table.add(Events(columns, CALLS, ["", "/a", "/b"]))
    table.add(Events(columns, CALLS, ["", "/c", "/d"]))
    other.add(Events(columns, CALLS, ["", "/a", "/e"]))
    assert table.files == {"/b", "/d"}
    table.merge(other)
    assert table.files == {"/b", "/d", "/e"}
