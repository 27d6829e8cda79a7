"""Different values and rows are those of NumPy's own function, whatever the range of the columns."""

from __future__ import annotations

import numpy as np
import pytest

from ensembles.model.distinct import distinct, distinct_rows

COLUMNS = {
    "few values: counted": (0, 5),
    "many values: sorted": (-(10**6), 10**6),
    "more than fit into one number": (-(1 << 62), 1 << 62),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_rows_are_those_of_numpy(name: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    table = rng.integers(*COLUMNS[name], (columns, 300))
    table[:, 100:200] = table[:, :100]  # rows come twice
    rows, number = distinct_rows(*table)
    expected, inverse = np.unique(table, axis=1, return_inverse=True)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(number, inverse.reshape(-1))


def test_without_rows_there_are_none() -> None:
    rows, number = distinct_rows(np.empty(0, np.uint32), np.empty(0, np.int64))
    assert rows.shape == (2, 0)
    assert number.shape == (0,)


def test_values_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).integers(0, 40, 100)
    np.testing.assert_array_equal(distinct(values), np.unique(values))
    assert not len(distinct(values[:0]))
