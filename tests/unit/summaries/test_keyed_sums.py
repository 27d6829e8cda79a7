"""Groups of rows with equal keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ensembles import _compiled
from ensembles.summaries.keyed_sums import groups_of_rows, sum_by_keys, unique_counts

KEYS = st.integers(1, 4).flatmap(
    lambda keys: arrays(np.int64, st.tuples(st.just(keys), st.integers(0, 400)), elements=st.integers(-3, 3))
)


@given(KEYS)
def test_groups_are_those_of_equal_rows_in_the_order_of_their_first(keys):
    group, first = groups_of_rows(list(keys))
    seen: dict[tuple[int, ...], int] = {}
    expected = [seen.setdefault(tuple(row), len(seen)) for row in keys.T.tolist()]
    assert group.tolist() == expected
    assert first.tolist() == [expected.index(number) for number in range(len(seen))]


def test_many_groups_are_as_those_of_numpy():
    rng = np.random.default_rng(3)
    values = rng.integers(-(1 << 62), 1 << 62, 50_000)[rng.integers(0, 50_000, 200_000)]
    expected = np.unique(values, return_counts=True)
    for mine, theirs in zip(unique_counts(values), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_groups_are_found_in_threads():
    """Memory of threads lies elsewhere than that of the program."""
    from concurrent.futures import ThreadPoolExecutor

    values = np.arange(100_000) % 4099
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(groups_of_rows, [[values]] * 6))
    for group, first in found:
        assert len(first) == 4099
        np.testing.assert_array_equal(group, values)


@given(KEYS, st.integers(0, 2**32), st.booleans())
def test_sums_are_those_made_row_by_row(keys, seed, with_taken):
    random = np.random.default_rng(seed)
    rows = keys.shape[1]
    whole, real = random.integers(-(1 << 62), 1 << 62, rows), random.normal(size=rows)
    taken = random.random(rows) < 0.6 if with_taken else None
    row_of = np.empty(rows, np.int32)
    named = {f"key{number}": key for number, key in enumerate(keys)}
    two = {"whole": whole, "real": real}
    found = sum_by_keys(named, two, {f"least {name}": each for name, each in two.items()},
                        {f"most {name}": each for name, each in two.items()}, taken, row_of)  # fmt: skip
    mine: dict[tuple[int, ...], list[int]] = {}
    for at, key in enumerate(map(tuple, keys.T.tolist())):
        if taken is None or taken[at]:
            mine.setdefault(key, []).append(at)
    assert list(zip(*(found[name].tolist() for name in named), strict=True)) == list(mine)
    numbers = {at: number for number, each in enumerate(mine.values()) for at in each}
    assert row_of.tolist() == [numbers.get(at, -1) for at in range(rows)]
    for number, each in enumerate(mine.values()):
        assert found["n"][number] == len(each)
        assert found["whole"][number] == whole[each].sum()
        assert found["real"][number] == np.add.accumulate(real[each])[-1]  # unlike `sum` of 3.12: one by one
        for name, column in two.items():
            assert found[f"least {name}"][number] == column[each].min()
            assert found[f"most {name}"][number] == column[each].max()


def test_narrow_columns_are_taken_as_unsigned_numbers():
    for dtype in ("u1", "u2", "u4", "?"):
        key = np.array([0, 1, 255 if dtype != "?" else 1]).astype(dtype)
        assert sum_by_keys({"key": key})["key"].tolist() == list(dict.fromkeys(key.astype(int).tolist()))


def test_arrays_that_do_not_fit_are_refused():
    rows, short = np.zeros(4, np.int64), np.zeros(3, np.int64)
    for keys, values, ways, taken, row_of in [
        ((rows, short), (), "", None, None),
        ((rows,), (short,), "s", None, None),
        ((rows,), (), "", np.zeros(3, bool), None),
        ((rows,), (), "", None, np.zeros(3, np.int32)),
    ]:
        with pytest.raises(ValueError, match="same length"):
            _compiled.sum_by_keys(keys, values, ways, taken, row_of)
    for keys, values, ways in [
        ((), (), ""),
        ((rows,) * 9, (), ""),
        ((rows,), (rows,), ""),
        ((rows,), (rows,), "x"),
    ]:
        with pytest.raises(ValueError, match="keys, and at most"):
            _compiled.sum_by_keys(keys, values, ways, None, None)
    for keys, values in [((rows.astype(complex),), ()), ((rows,), (np.zeros(4, np.float32),))]:
        with pytest.raises(TypeError, match="a column must have items of"):
            _compiled.sum_by_keys(keys, values, "s" * len(values), None, None)
