"""Undoing the shuffle of HDF5, against HDF5 itself."""

from __future__ import annotations

import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from ensembles.readers.native.job_file_codec import unshuffle


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i8"])
def test_items_are_those_that_hdf5_shuffled(dtype: str, tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 255, 1000 * np.dtype(dtype).itemsize, "u1").view(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        stored = file.create_dataset("x", data=values, chunks=(1000,), shuffle=True, compression="gzip")
        data = zlib.decompress(stored.id.read_direct_chunk((0,))[1])
    for low, high in ((0, 1000), (17, 400), (999, 1000), (5, 5)):
        out = np.zeros(high - low, dtype)
        unshuffle(data, low, out)
        np.testing.assert_array_equal(out, values[low:high])


@pytest.mark.parametrize(("length", "first", "count"), [(80, 5, 6), (81, 0, 1), (80, -1, 2), (0, 0, 1)])
def test_too_few_bytes_are_refused(length: int, first: int, count: int) -> None:
    with pytest.raises(ValueError, match="there are fewer items"):
        unshuffle(bytes(length), first, np.zeros(count, "i8"))
