"""A program that writes HDF5 with a habit, or without it: ``hdf5_habits.py ACTION FOLDER [OPTION=VALUE]``."""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np


def dataset(folder: Path, options: dict[str, str]) -> None:
    """Write a dataset whose fill values are written first, or never."""
    rows, columns = int(options.get("rows", "4096")), 4096
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_chunk((64, 512))
    if int(options.get("filled", "0")):
        create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        create.set_fill_time(h5py.h5d.FILL_TIME_ALLOC)
        create.set_fill_value(np.array(3.0))
    else:
        create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(folder / "data.h5", "w", rdcc_nbytes=1 << 26) as file:
        space = h5py.h5s.create_simple((rows, columns))
        data = h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, create))
        for row in range(0, rows, 64):
            data[row : row + 64, :] = row


def chunks(folder: Path, options: dict[str, str]) -> None:
    """Write columns of chunks that the cache holds, or does not hold."""
    cache = int(options.get("cache", str(1 << 26)))
    with h5py.File(folder / "data.h5", "w", rdcc_nbytes=cache, rdcc_nslots=10007) as file:
        data = file.create_dataset("x", (1024, 1024), "f8", chunks=(1024, 64), fillvalue=None)
        step = int(options.get("step", "16"))
        for row in range(0, 1024, step):
            data[row : row + step, :] = row


def objects(folder: Path, options: dict[str, str]) -> None:
    """Store small results in a group each, or in one dataset."""
    count, many = int(options.get("count", "500")), int(options.get("many", "0"))
    with h5py.File(folder / "data.h5", "w") as file:
        if many:
            for number in range(count):
                group = file.create_group(f"g{number}")
                group.attrs["a"] = number
                group["x"] = np.arange(4)
        else:
            file["a"] = np.arange(count)
            file["x"] = np.tile(np.arange(4), (count, 1))
    with h5py.File(folder / "data.h5") as file:
        if many:
            sum(file[f"g{number}"].attrs["a"] + file[f"g{number}/x"][0] for number in range(count))
        else:
            int(file["a"][:].sum() + file["x"][:, 0].sum())


def main() -> None:
    """Run an action."""
    options = dict(word.split("=", 1) for word in sys.argv[3:])
    {"dataset": dataset, "chunks": chunks, "objects": objects}[sys.argv[1]](Path(sys.argv[2]), options)


if __name__ == "__main__":
    main()
