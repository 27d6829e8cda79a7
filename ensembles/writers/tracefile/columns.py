"""Store columns and attributes of a ``trace.h5`` with checksums, so that readers detect damage.

Texts have a fixed length. HDF5 stores texts of variable length in the global heap, the only structure of the
format without a checksum. If a text there is damaged, the HDF5 library may loop forever.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

_CHUNK_BYTES = 1 << 18
_PACKED_BYTES = 1 << 10
"""Columns of texts are compressed above this length."""


def put_text(thing: h5py.Group | h5py.Dataset, name: str, text: str) -> None:
    """Store a text as an attribute."""
    data = os.fsencode(text)
    thing.attrs.create(name, np.bytes_(data), dtype=h5py.string_dtype("utf-8", max(len(data), 1)))


def put_column(group: h5py.Group, name: str, data: np.ndarray, unit: str = "", meaning: str = "") -> None:
    """Store a column of numbers, with unit and meaning as its attributes."""
    dataset = _created(group, name, len(data), data.dtype, data.itemsize)
    if len(data):
        dataset[:] = data
    if unit or meaning:
        describe(dataset, unit, meaning)


def put_texts(group: h5py.Group, name: str, texts: Sequence[str], meaning: str) -> None:
    """Store a column of texts, with the length of the longest one."""
    coded = [os.fsencode(text) for text in texts]
    width = max(map(len, coded), default=0) or 1
    packing = {"compression": "gzip", "compression_opts": 1} if len(coded) * width > _PACKED_BYTES else {}
    dataset = _created(group, name, len(coded), _text_type(width), width + 1, **packing)
    put_text(dataset, "meaning", meaning)
    rows = dataset.chunks[0] if dataset.chunks else 1
    for first in range(0, len(coded), rows):
        some = coded[first : first + rows]
        dataset[first : first + rows] = np.array(some, h5py.string_dtype("utf-8", width))


def describe(dataset: h5py.Dataset, unit: str, meaning: str) -> None:
    """Store unit and meaning of a column as its attributes."""
    put_text(dataset, "unit", unit)
    put_text(dataset, "meaning", meaning)


def _text_type(width: int) -> h5py.Datatype:
    """Make a type of null-terminated texts; of null-padded ones, h5dump prints the padding."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(width + 1)
    kind.set_cset(h5py.h5t.CSET_UTF8)
    return h5py.Datatype(kind)


def _created(
    group: h5py.Group,
    name: str,
    length: int,
    dtype: np.dtype | h5py.Datatype,
    item_bytes: int,
    **packing: Any,
) -> h5py.Dataset:
    if length == 0:  # HDF5 does not allow chunks of length 0
        return group.create_dataset(name, (0,), dtype)
    rows = min(length, max(_CHUNK_BYTES // item_bytes, 1))
    return group.create_dataset(name, (length,), dtype, chunks=(rows,), fletcher32=True, **packing)
