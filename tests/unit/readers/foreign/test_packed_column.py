"""Packed columns give the values back, whatever they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ensembles.readers.foreign.common.import_table import PackedColumn

KINDS = ("u1", "u2", "u4", "u8", "i8")


@st.composite
def columns(draw: st.DrawFn) -> np.ndarray:
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    low, high = sorted(draw(st.tuples(st.integers(least, most), st.integers(least, most))))
    return draw(arrays(kind, draw(st.integers(0, 20)), elements=st.integers(low, high)))


@given(columns(), st.integers(0, 25), st.integers(0, 25))
def test_values_come_back(values: np.ndarray, low: int, high: int) -> None:
    packed = PackedColumn(values)
    whole, part = packed.unpacked(), packed.unpacked(low, high)
    assert len(packed) == len(values)
    assert whole.dtype == part.dtype == values.dtype
    np.testing.assert_array_equal(whole, values)
    np.testing.assert_array_equal(part, values[low:high])


def test_the_column_does_not_follow_later_changes() -> None:
    values = np.array([0, 1 << 60])
    packed = PackedColumn(values)
    values[:] = 7
    assert packed.unpacked().tolist() == [0, 1 << 60]


def test_equal_and_close_values_take_few_bytes() -> None:
    assert PackedColumn(np.full(1000, -5)).nbytes == 0
    assert PackedColumn(np.arange(1 << 40, (1 << 40) + 200)).nbytes == 200
    assert PackedColumn(np.array([-(1 << 63), (1 << 63) - 1])).nbytes == 16
