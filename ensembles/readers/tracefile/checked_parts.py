"""Check groups, columns and filters of a ``trace.h5`` before HDF5 reads them.

HDF5 follows links into other files, reads the data of a column from other files, returns zeros for data that
were never written, and decompresses a few bytes to any length. Here every part must lie in the file itself,
and the memory to read a part is proportional to the file.

Some damage makes the HDF5 library crash or loop, for example a damaged text of variable length. Therefore
only structures with checksums are accepted, and no texts of variable length, since the global heap that holds
them has no checksum.

Kept summaries in a ``trace.h5``: the group ``kept``, one column of bytes for each request.

They are sealed (`ensembles.passes.kept.seal`) with the identity of the rest of the file: its attributes, and
types, sizes and samples of all other columns. If any of these has changed, the summaries are not taken.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import h5py
import numpy as np

from ensembles.files.untrusted import MOST_PART_BYTES, SMALL_PART_BYTES, open_regular
from ensembles.model.errors import MissingLibrary
from ensembles.model.events import COLUMNS
from ensembles.model.units import DEFLATE_RATIO, HALF_INT64
from ensembles.passes.kept import MOST_BYTES, SAMPLE_BYTES

_HEADER = b"OHDR"
"""Signature of an object header with a checksum; headers without one begin with their version, 1."""

_SUPERBLOCK = struct.Struct("<8xBB2xQ16xQ")
"""Superblock: version, size of an address, base address, address of the header of the root group."""


def check_superblock(path: str) -> None:
    """Check that a file begins with a superblock and a header that have checksums."""
    with open_regular(path) as file:
        first = file.read(_SUPERBLOCK.size)
        if len(first) < _SUPERBLOCK.size:
            raise ValueError("it is cut short")
        version, place_bytes, base, root = _SUPERBLOCK.unpack(first)
        if version not in (2, 3):
            raise ValueError("it has no checksums, as those of other programs, and of ensio before version 4")
        if place_bytes != 8 or base != 0 or not is_header(file.fileno(), root):
            raise ValueError("its first header is damaged")


def is_header(descriptor: int, place: int) -> bool:
    """Test whether an object header with a checksum begins at an address of a file."""
    return os.pread(descriptor, len(_HEADER), min(place, HALF_INT64)) == _HEADER


_MOST_RATIO = 64
"""A column that is read at once has at most `SMALL_PART_BYTES`, or this many times its stored bytes."""

_MOST_TEXT_RATIO = 256
"""The same for columns of texts. Equal texts count once, with their own lengths."""


def has_part(parent: h5py.Group, name: str) -> bool:
    """Test whether a group has a part of this name; ``name in parent`` would follow external links."""
    return bool(parent.id.links.exists(name.encode()))


def lies_here(parent: h5py.Group, name: str) -> bool:
    """Test whether a part exists and is a hard link, not a link to another path or file."""
    return has_part(parent, name) and parent.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD


def find_plugins(group: h5py.Group, path: str) -> None:
    """Check that the filters of all columns of a group are available; load those of hdf5plugin if needed."""
    for name in COLUMNS:
        if not lies_here(group, name):
            continue  # the reader of the column reports it
        dataset = group[name]
        if not isinstance(dataset, h5py.Dataset):
            continue
        settings = dataset.id.get_create_plist()
        for place in range(settings.get_nfilters()):
            code, _, _, label = settings.get_filter(place)
            if h5py.h5z.filter_avail(code):
                continue
            why = "which is not installed"
            try:
                import hdf5plugin  # noqa: F401 # the import registers its filters
            except ModuleNotFoundError:
                pass
            except Exception as error:  # of whatever fails in another package
                why = f"which hdf5plugin does not load ({error})"
            if not h5py.h5z.filter_avail(code):
                known = label.decode("ascii", "replace") or "without a name"
                raise MissingLibrary(
                    f"{path} is compressed by HDF5's filter {code} ({known}), {why}: "
                    "pip install hdf5plugin, or make the file again with ensio collect --format gzip"
                )


def open_group(parent: h5py.Group, name: str) -> h5py.Group:
    """Open a group of the same file."""
    group = _own(parent, name)
    if not isinstance(group, h5py.Group):
        raise ValueError(f"{name} in it is not a group")
    return group


def open_column(group: h5py.Group, name: str, is_whole: bool = False) -> h5py.Dataset:
    """Open a column that is stored completely: HDF5 returns zeros for data that were never written."""
    dataset = _own(group, name)
    if not isinstance(dataset, h5py.Dataset) or len(dataset.shape or ()) != 1:
        raise ValueError(f"{name} in it is not a column")
    if dataset.external is not None or dataset.is_virtual:
        raise ValueError(f"its column {name} lies in other files")
    if dataset.chunks is not None and dataset.chunks[0] * dataset.dtype.itemsize > MOST_PART_BYTES:
        raise ValueError(f"its column {name} has chunks of {dataset.chunks[0]:,} rows")
    if is_whole:
        return dataset
    (length,), stored_bytes = dataset.shape, dataset.id.get_storage_size()
    if dataset.chunks is None:
        whole = stored_bytes >= length * dataset.dtype.itemsize
    else:
        whole = dataset.id.get_num_chunks() == -(-length // dataset.chunks[0])
        if dataset.compression == "gzip":
            whole &= DEFLATE_RATIO * stored_bytes >= length * dataset.dtype.itemsize
    if not whole or stored_bytes > os.fstat(open_descriptor(dataset)).st_size:
        raise ValueError(f"a part of its column {name} is missing")
    return dataset


def whole_column(group: h5py.Group, name: str) -> np.ndarray:
    """Read a whole column."""
    dataset = open_column(group, name)
    if dataset.dtype.hasobject:
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    size, stored_bytes = len(dataset) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if size > max(SMALL_PART_BYTES, _MOST_RATIO * stored_bytes):
        raise ValueError(f"its column {name} decompresses to {size:,} bytes from {stored_bytes:,}")
    column: np.ndarray = dataset[:]
    return column


def read_texts(group: h5py.Group, name: str) -> list[str]:
    """Read a column of texts of a fixed length."""
    dataset = open_column(group, name)
    kind = h5py.check_string_dtype(dataset.dtype)
    if kind is None or kind.length is None:
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    most_bytes = max(SMALL_PART_BYTES, _MOST_TEXT_RATIO * dataset.id.get_storage_size())
    at_a_time = dataset.chunks[0] if dataset.chunks else max(MOST_PART_BYTES // kind.length, 1)
    known: dict[bytes, str] = {}  # a million tasks may have one command
    texts: list[str] = []
    for first in range(0, len(dataset), at_a_time):
        for text in dataset[first : first + at_a_time].tolist():
            if text not in known:
                known[text] = os.fsdecode(text)
                most_bytes -= len(text)
            texts.append(known[text])
        if most_bytes < 8 * len(texts):
            raise ValueError(f"its column {name} decompresses to much more than its stored size")
    return texts


def read_rows(group: h5py.Group, *names: str) -> list[tuple[str, ...]]:
    """Read several columns of texts, and return a tuple per row."""
    return list(zip(*(read_texts(group, name) for name in names), strict=True))


def read_numbers(group: h5py.Group, name: str) -> Any:
    """Read a column of integers."""
    dataset = open_column(group, name)
    if dataset.dtype.kind not in "iu":
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    return whole_column(group, name)


def read_attribute(parent: h5py.Group, name: str) -> Any:
    """Read an attribute that is one number or one text of a fixed length (bytes)."""
    attribute = h5py.h5a.open(parent.id, name.encode())
    kind = attribute.get_type()
    plain = isinstance(kind, (h5py.h5t.TypeIntegerID, h5py.h5t.TypeFloatID)) or (
        isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
    )
    if not plain or attribute.shape != () or kind.get_size() > SMALL_PART_BYTES:
        raise ValueError(f"its attribute {name} is neither a number nor a text of a fixed length")
    return parent.attrs[name]


def _own(parent: h5py.Group, name: str) -> Any:
    if not has_part(parent, name):
        raise KeyError(f"{name} is missing")
    link = parent.id.links.get_info(name.encode())
    if link.type != h5py.h5l.TYPE_HARD:
        raise ValueError(f"{name} in it is a link to somewhere else")
    if not is_header(open_descriptor(parent), link.u):
        raise ValueError(f"the header of {name} in it has no checksum")
    return parent[name]


def open_descriptor(part: h5py.Group | h5py.Dataset) -> int:
    """Return the descriptor of the open file of a part."""
    return int(h5py.h5i.get_file_id(part.id).get_vfd_handle())


GROUP = "kept"


def content_identity(file: h5py.File, is_own: bool = False) -> bytes:
    """Compute what identifies the run in a file."""
    digest = blake2b(digest_size=16)
    file_bytes = None if is_own else os.fstat(open_descriptor(file)).st_size
    for name in sorted(file.attrs):
        digest.update(f"{name!r} {file.attrs[name]!r}".encode("utf-8", "surrogateescape"))
    for path, column in _columns(file, is_own):
        if is_own:
            column.flush()  # of the file, it would write the beginning, which an unfinished file lacks
        stored_bytes = column.id.get_storage_size()
        if file_bytes is not None and stored_bytes > file_bytes:
            raise ValueError(f"a part of its column {path} is missing")
        digest.update(f"{path} {column.dtype.str} {column.shape} {stored_bytes}".encode())
        if column.chunks is None or not column.shape[0]:
            continue
        last = (column.shape[0] - 1) // column.chunks[0]
        for number in sorted({0, last // 2, last}):
            data = _stored_chunk(column, number * column.chunks[0])
            digest.update(f"{number} {len(data)}".encode() + data[:SAMPLE_BYTES] + data[-SAMPLE_BYTES:])
    return digest.digest()


def _stored_chunk(column: h5py.Dataset, row: int) -> bytes:
    """Return the chunk with a row, as it is stored."""
    try:
        data: bytes = column.id.read_direct_chunk((row,))[1]
    except MemoryError as error:  # HDF5 gives a chunk that is missing any length
        raise ValueError(f"a part of its column {column.name} is missing") from error
    return data


def _columns(file: h5py.File, is_own: bool) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the columns of all groups but that of the kept summaries, and those of the file itself."""
    for name in sorted(file):
        if name == GROUP:
            continue
        if file.get(name, getclass=True) is h5py.Group:
            group = file[name] if is_own else open_group(file, name)
            for each in sorted(group):
                yield f"{name}/{each}", group[each] if is_own else open_column(group, each, is_whole=True)
        else:
            yield name, file[name] if is_own else open_column(file, name, is_whole=True)


def read_sealed(file: h5py.File, name: str) -> bytes | None:
    """Read a sealed summary of a file."""
    if not has_part(file, GROUP):
        return None
    group = open_group(file, GROUP)
    if not has_part(group, name):
        return None
    column = open_column(group, name)
    if column.dtype != np.uint8 or column.shape[0] > 2 * MOST_BYTES:
        raise ValueError(f"its column {name} is not a kept summary")
    return bytes(column[:].tobytes())
