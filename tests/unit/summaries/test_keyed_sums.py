"""Groups of rows with equal keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ensembles import _compiled
from ensembles.summaries.keyed_sums import groups_of_rows, unique_counts

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


def test_arrays_that_do_not_fit_are_refused():
    rows, short = np.zeros(4, np.int64), np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="same length"):
        _compiled.group_rows(np.empty(4, np.int32), np.empty(4, np.int64), rows, short)
    with pytest.raises(TypeError, match="one to 8 keys"):
        _compiled.group_rows(np.empty(4, np.int32), np.empty(4, np.int64))
