"""Groups and columns of a ``trace.h5`` that are not believed unread.

HDF5 would follow links into other files, take a column's data from them, give zeros for what was never
written, and unpack a few bytes into any number. Here a part is what lies in the file itself, and what is read
as a whole takes memory in proportion to the file.
"""

from __future__ import annotations

import os
from typing import Any

import h5py
import numpy as np

_DEFLATE_RATIO = 1032
"""No deflated data become longer than this many times their length."""

_MOST_CHUNK_BYTES = 1 << 27

_ALWAYS_READ_BYTES = 1 << 26
_MOST_RATIO = 64
"""A column that is read as a whole has at most so many bytes, or so many times those that are stored."""

_ROWS_AT_A_TIME = 64
"""Of texts whose lengths are not known beforehand."""

_REFERENCE = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])
"""How HDF5 stores one of the texts of a column: it lies elsewhere in the file."""


def has_part(parent: h5py.Group, name: str) -> bool:
    """Whether a group has a part of this name; `name in parent` would open the file that a link leads to."""
    return bool(parent.id.links.exists(name.encode()))


def lies_here(parent: h5py.Group, name: str) -> bool:
    """Whether a part is no link to another place, or another file."""
    return has_part(parent, name) and parent.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD


def group_of(parent: h5py.Group, name: str) -> h5py.Group:
    """A group of the same file.

    Raises
    ------
    ValueError
        It is no group, or lies elsewhere.
    """
    group = _own(parent, name)
    if not isinstance(group, h5py.Group):
        raise ValueError(f"{name} in it is no group")
    return group


def column_of(group: h5py.Group, name: str) -> h5py.Dataset:
    """A column that is there in full: HDF5 gives zeros for what was never written, at any length.

    Raises
    ------
    ValueError
        It is not, or no column, or lies elsewhere.
    """
    dataset = _own(group, name)
    if not isinstance(dataset, h5py.Dataset) or len(dataset.shape or ()) != 1:
        raise ValueError(f"{name} in it is no column")
    if dataset.external is not None or dataset.is_virtual:
        raise ValueError(f"its column {name} lies in other files")
    (length,), stored_bytes = dataset.shape, dataset.id.get_storage_size()
    if dataset.chunks is None:
        whole = stored_bytes >= length * dataset.dtype.itemsize
    elif dataset.chunks[0] * dataset.dtype.itemsize > _MOST_CHUNK_BYTES:
        raise ValueError(f"its column {name} has chunks of {dataset.chunks[0]:,} rows")
    else:
        whole = dataset.id.get_num_chunks() == -(-length // dataset.chunks[0])
        if dataset.compression == "gzip":
            whole &= _DEFLATE_RATIO * stored_bytes >= length * dataset.dtype.itemsize
    if not whole:
        raise ValueError(f"a part of its column {name} is missing")
    return dataset


def whole_column(group: h5py.Group, name: str) -> np.ndarray:
    """All of a column."""
    dataset = column_of(group, name)
    if dataset.dtype.hasobject:
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    _check_size(dataset, name)
    return dataset[:]


def texts_of(group: h5py.Group, name: str) -> list[str]:
    """A column of texts."""
    dataset = column_of(group, name)
    if h5py.check_string_dtype(dataset.dtype) is None:
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    _check_size(dataset, name)
    most_bytes = os.fstat(descriptor_of(dataset)).st_size
    lengths = _lengths_of_texts(dataset)
    if lengths is not None and int(lengths.sum()) > most_bytes:
        raise ValueError(f"the texts of its column {name} are longer than the file")
    at_a_time = len(dataset) if lengths is not None else _ROWS_AT_A_TIME
    texts: list[str] = []
    for first in range(0, len(dataset), max(at_a_time, 1)):
        some = [os.fsdecode(text) for text in dataset[first : first + at_a_time]]
        most_bytes -= sum(map(len, some)) if lengths is None else 0
        if most_bytes < 0:
            raise ValueError(f"the texts of its column {name} are longer than the file")
        texts += some
    return texts


def rows_of(group: h5py.Group, *names: str) -> list[tuple[str, ...]]:
    """Several columns of texts, row by row."""
    return list(zip(*(texts_of(group, name) for name in names), strict=True))


def numbers_of(group: h5py.Group, name: str) -> Any:
    """A column of whole numbers: an array."""
    dataset = column_of(group, name)
    if dataset.dtype.kind not in "iu":
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    return whole_column(group, name)


def _own(parent: h5py.Group, name: str) -> Any:
    if not has_part(parent, name):
        raise KeyError(f"{name} is missing")
    if not lies_here(parent, name):
        raise ValueError(f"{name} in it is a link to somewhere else")
    return parent[name]


def _check_size(dataset: h5py.Dataset, name: str) -> None:
    size, stored_bytes = len(dataset) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if size > max(_ALWAYS_READ_BYTES, _MOST_RATIO * stored_bytes):
        raise ValueError(f"its column {name} unpacks to {size:,} bytes from {stored_bytes:,}")


def descriptor_of(dataset: h5py.Dataset) -> int:
    """Of the open file in which a column lies."""
    return int(dataset.file.id.get_vfd_handle())


def _lengths_of_texts(dataset: h5py.Dataset) -> np.ndarray | None:
    """Bytes of each text, before any is read, for many may be one and the same long one; None: the references
    are packed."""
    if not dataset.dtype.hasobject:
        return np.full(len(dataset), dataset.dtype.itemsize)
    place = dataset.id.get_offset()
    if place is None or dataset.id.get_storage_size() != len(dataset) * _REFERENCE.itemsize:
        return None
    stored = os.pread(
        descriptor_of(dataset), len(dataset) * _REFERENCE.itemsize, place + dataset.file.userblock_size
    )
    return np.frombuffer(stored, _REFERENCE)["length"].astype(np.int64)
