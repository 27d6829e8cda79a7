"""Edges of cells in pages: short where the error is far below a cell, exact elsewhere."""

import numpy as np
import pytest

from ensembles.viz.common.figures import cells_of_time


@pytest.mark.parametrize(
    ("first_ns", "cell_ns", "dtype"),
    [(0, 1 << 23, np.float32), (0, 1, np.float32), (15_000 * 10**9, 1_000, np.float64)],
    ids=["whole run", "short run", "short window of a long run"],
)
def test_edges_are_off_by_less_than_a_thousandth_of_a_cell(first_ns, cell_ns, dtype):
    edges_ns = first_ns + np.arange(2049, dtype=np.int64) * cell_ns
    cells = cells_of_time(edges_ns)
    assert cells["left"].dtype == cells["right"].dtype == dtype
    exact_ns = cells["left"].astype(np.float64) * 1e9
    np.testing.assert_allclose(exact_ns, edges_ns, rtol=0, atol=1e-3 * cell_ns + 4e-3)
    np.testing.assert_array_equal(cells["right"][:-1], cells["left"][1:])
    assert np.isnan(cells["right"][-1])
