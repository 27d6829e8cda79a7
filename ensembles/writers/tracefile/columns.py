"""Columns and attributes of a ``trace.h5``, stored so that damage shows when they are read.

Texts have a fixed length: those of variable length lie in HDF5's global heap, the one structure of the format
that never has a checksum, and of which its library does not come back where an empty text lost its number.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

_CHUNK_BYTES = 1 << 18
_PACKED_BYTES = 1 << 10
"""Shorter columns of texts would hardly become shorter."""


def put_text(thing: h5py.Group | h5py.Dataset, name: str, text: str) -> None:
    """An attribute that is a text."""
    data = os.fsencode(text)
    thing.attrs.create(name, np.bytes_(data), dtype=h5py.string_dtype("utf-8", max(len(data), 1)))


def put_column(group: h5py.Group, name: str, data: np.ndarray, unit: str = "", meaning: str = "") -> None:
    """A column of numbers."""
    dataset = _created(group, name, len(data), data.dtype, data.itemsize)
    if len(data):
        dataset[:] = data
    if unit or meaning:
        describe(dataset, unit, meaning)


def put_texts(group: h5py.Group, name: str, texts: Sequence[str], meaning: str) -> None:
    """A column of texts, as long as the longest of them."""
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
    """Unit and meaning of a column, as attributes of it."""
    put_text(dataset, "unit", unit)
    put_text(dataset, "meaning", meaning)


def _text_type(width: int) -> h5py.Datatype:
    """Texts that end with a zero: of those that are padded, h5dump prints the zeros."""
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
    if length == 0:  # which cannot have chunks
        return group.create_dataset(name, (0,), dtype)
    rows = min(length, max(_CHUNK_BYTES // item_bytes, 1))
    return group.create_dataset(name, (length,), dtype, chunks=(rows,), fletcher32=True, **packing)
