"""Whether rows are sorted as an index says, against looking at them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensembles import _compiled
from ensembles.readers.tracefile.index import IndexBuilder


def is_sorted(rank, start, duration, begins, ranks, max_end) -> bool:
    """Whether the rows are as an index of one chunk says, which has their first and last start."""
    n = max(len(column) for column in (rank, start, duration) if column is not None)
    first, last = np.zeros((2, 1), "i8") if start is None else start[[0, -1]].reshape(2, 1)
    index = (begins, ranks, first, last, np.array([max_end]))
    return _compiled.are_chunks_sorted(rank, start, duration, np.zeros(1, "i8"), n, *index)


def one_by_one(rank, start, duration, begins, ranks, max_end) -> bool:
    n = max(len(column) for column in (rank, start, duration) if column is not None)
    expected = np.repeat(ranks, np.diff(np.append(begins, n)))
    for i in range(n):
        if rank is not None and rank[i] != expected[i]:
            return False
        goes_on = rank is not None and i > 0 and rank[i] == rank[i - 1]
        if goes_on and start is not None and start[i] < start[i - 1]:
            return False
    return start is None or duration is None or max(map(int, start + duration)) == max_end


@st.composite
def told(draw: st.DrawFn):
    """Sorted rows, and often one number that is not what it was."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    n = sum(lengths)
    ranks = np.cumsum(draw(st.lists(st.integers(1, 3), min_size=len(lengths), max_size=len(lengths)))) - 1
    begins = np.cumsum([0, *lengths[:-1]])
    rank = np.repeat(ranks, lengths).astype("u4")
    start = np.array(draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)), "i8")
    for low, length in zip(begins, lengths, strict=True):
        start[low : low + length].sort()
    duration = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), "i8")
    max_end = int((start + duration).max())
    place, by = draw(st.integers(0, n - 1)), draw(st.integers(0, 2))
    changed = draw(st.sampled_from(["", "rank", "start", "duration", "max_end"]))
    if changed == "rank":
        rank[place] += by
    elif changed == "start":
        start[place] -= by
    elif changed == "duration":
        duration[place] += by
    elif changed == "max_end":
        max_end += by
    left_out = draw(st.sampled_from([(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]))
    columns = [None if i in left_out else column for i, column in enumerate((rank, start, duration))]
    return (*columns, begins.astype("i8"), ranks.astype("i8"), max_end)


@given(told=told())
def test_it_is_what_looking_at_each_row_says(told) -> None:
    assert is_sorted(*told) == one_by_one(*told)


@pytest.mark.parametrize("n", [1, 8191, 8192, 8193, 20_000])
def test_one_row_out_of_order_is_seen_wherever_it_is(n: int) -> None:
    """Some rows are looked at together."""
    start = np.arange(n, dtype="i8") * 3
    rank, duration = np.full(n, 4, "u4"), np.full(n, 2, "i8")
    index = (np.zeros(1, "i8"), np.full(1, 4, "i8"), int(start[-1]) + 2)
    assert is_sorted(rank, start, duration, *index)
    for place in {0, n // 2, n - 1, 8191 % n, 8192 % n}:
        if place:
            fallen = start.copy()
            fallen[place] = fallen[place - 1] - 1
            assert not is_sorted(rank, fallen, None, *index)
        other = rank.copy()
        other[place] = 5
        assert not is_sorted(other, start, duration, *index)
        longer = duration.copy()
        longer[place] = 10**9
        assert not is_sorted(rank, start, longer, *index)


def test_ranks_that_no_row_can_have_are_not_sorted() -> None:
    rank, start = np.zeros(3, "u4"), np.arange(3, dtype="i8")
    assert not is_sorted(rank, start, None, np.zeros(1, "i8"), np.array([1 << 32]), 0)
    assert is_sorted(None, start, None, np.zeros(1, "i8"), np.array([1 << 32]), 0)


@st.composite
def chunks_of_a_run(draw: st.DrawFn):
    """An index, chunks of its run, their rows, and often one number that is not what it was."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    rows = draw(st.integers(1, 7))
    steps = draw(st.lists(st.integers(1, 3), min_size=len(lengths), max_size=len(lengths)))
    rank = np.repeat(np.cumsum(steps), lengths)
    start = np.concatenate([np.sort(draw(st.permutations(range(20)))[:length]) for length in lengths])
    duration = np.array(draw(st.lists(st.integers(0, 9), min_size=len(rank), max_size=len(rank))))
    columns = {"rank": rank.astype("u4"), "start": start.astype("i8"), "duration": duration.astype("i8")}
    columns |= {"call": np.zeros(len(rank), "u2"), "file": np.zeros(len(rank), "u4")}
    columns["requested"] = np.zeros(len(rank), "u8")
    builder = IndexBuilder(rows)
    for low in range(0, len(rank), rows):
        builder.add({name: column[low : low + rows] for name, column in columns.items()})
    index = builder.index()
    numbers = sorted(draw(st.sets(st.integers(0, index.chunks - 1), min_size=1)))
    some = {
        name: np.concatenate([columns[name][n * rows : (n + 1) * rows] for n in numbers])
        for name in ("rank", "start", "duration")
    }
    changed, place = draw(st.sampled_from([None, *some])), draw(st.integers(0, len(some["rank"]) - 1))
    if changed is not None:
        some[changed][place] += draw(st.integers(0, 2))
    for name in draw(st.sampled_from([(), ("rank",), ("start",), ("duration",), ("rank", "duration")])):
        del some[name]
    return index, np.array(numbers, "i8"), some


@given(told=chunks_of_a_run())
def test_chunks_together_are_checked_as_one_by_one(told) -> None:
    index, numbers, columns = told
    complaints = []
    for place, number in enumerate(numbers.tolist()):
        part = slice(place * index.rows, (place + 1) * index.rows)
        try:
            index.check(np.array([number]), {name: column[part] for name, column in columns.items()})
        except ValueError as error:
            complaints.append(str(error))
    if not complaints:
        index.check(numbers, columns)
        return
    with pytest.raises(ValueError, match="not sorted as its index says") as raised:
        index.check(numbers, columns)
    assert str(raised.value) == complaints[0]


@pytest.mark.parametrize("numbers", [[], [0, 1, 2], [-1, 0], [0, 2], [0]])
def test_chunks_that_do_not_fit_their_rows_are_refused(numbers: list[int]) -> None:
    rank, start = np.zeros(5, "u4"), np.arange(5, dtype="i8")
    index = (np.zeros(1, "i8"), np.zeros(1, "i8"), np.array([0, 3]), np.array([2, 4]), np.array([2, 4]))
    assert _compiled.are_chunks_sorted(rank, start, None, np.array([0, 1]), 3, *index)
    with pytest.raises(ValueError, match="does not fit"):
        _compiled.are_chunks_sorted(rank, start, None, np.array(numbers, "i8"), 3, *index)
    for rows in (0, -3, 2, 5, 1 << 40):
        with pytest.raises(ValueError, match="does not fit"):
            _compiled.are_chunks_sorted(rank, start, None, np.array([0, 1]), rows, *index)
