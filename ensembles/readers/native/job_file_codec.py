"""Decode the contents of a job file: blocks of events, and texts.

docs/reference/formats/job-file.md describes the coding. A C extension decodes the blocks; without it, NumPy
does, with equal results. ``NATIVE`` is true if the extension is in use.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ensembles.model.c_layout import BLOCK, CONSTANTS, TEMPLATE

try:
    from ensembles.readers.native import _decode
except ImportError:
    _decode = None  # type: ignore[assignment]
if not hasattr(_decode, "unshuffle"):  # built from older sources
    _decode = None  # type: ignore[assignment]

NATIVE = _decode is not None

BLOCK_EVENTS = CONSTANTS["ENSIO_BLOCK_EVENTS"]

_COLUMNS = ("start", "duration", "file", "requested", "moved", "offset")
_CHECKED_FROM = BLOCK.field_offset("events")
_MOST_NUMBER_BYTES = 10


def decode_events(block: Any, out: np.ndarray) -> int:
    """Decode one block of events.

    Parameters
    ----------
    block : bytes-like
    out : ndarray of EVENT.dtype, shape (n,), C-contiguous
        Receives the events in its first elements.

    Returns
    -------
    int
        Number of events.

    Raises
    ------
    ValueError
        The block is damaged.
    IndexError
        The block has more than n events.
    """
    check_block(block)
    if _decode is None:
        return numpy_decode_events(block, out)
    return _decode.decode_events(block, out.view("u1"))


def check_block(block: Any) -> None:
    """Check the checksum of a block.

    Parameters
    ----------
    block : bytes-like

    Raises
    ------
    ValueError
        The checksum is wrong.
    """
    if len(block) < BLOCK.size or BLOCK.unpack(block).checksum != zlib.crc32(block[_CHECKED_FROM:]):
        raise ValueError("the block's checksum is wrong")


def numpy_decode_events(block: Any, out: np.ndarray) -> int:
    """Decode one block as `decode_events`, in NumPy and without checking the checksum."""
    templates, number_of, columns = _parts(block)
    count = len(number_of)
    if count > len(out):
        raise IndexError("the block has more events than there is room for")
    if count == 0:
        _require(not any(len(column) for column in columns.values()))
        return 0
    _require(number_of.max() < len(templates))
    shape = templates["shape"][number_of]
    events = out[:count]
    for name in ("call", "depth", "flags"):
        events[name] = templates[name][number_of]
    duration = _numbers(columns["duration"], count)
    events["duration"] = duration
    steps = _unfolded(_numbers(columns["start"], count))
    steps[1:] += duration[:-1]
    events["start"] = np.cumsum(steps)
    file = np.cumsum(_given(columns["file"], shape & CONSTANTS["ENSIO_GIVEN_FILE"]))
    _require(file.max() <= 0xFFFFFFFF)
    events["file"] = file
    requested = _given(columns["requested"], shape & CONSTANTS["ENSIO_GIVEN_REQUESTED"])
    slot = (events["call"] % CONSTANTS["ENSIO_CALL_SLOTS"]).astype("u2")
    order, first = _groups(slot)
    requested[order] = _sums_of_groups(requested[order], first)
    events["requested"] = requested
    moved = requested + _given(columns["moved"], shape & CONSTANTS["ENSIO_GIVEN_MOVED"])
    events["moved"] = moved.view("i8")
    events["offset"] = -1
    _decode_offsets(columns["offset"], shape & CONSTANTS["ENSIO_OFFSET_PLACES"], file, moved, events)
    return count


def _parts(block: Any) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return the templates, the template number of each event, and the columns of a block."""
    _require(len(block) >= BLOCK.size)
    head = BLOCK.unpack(block)
    _require(
        head.magic == CONSTANTS["ENSIO_BLOCK_MAGIC"]
        and head.events <= BLOCK_EVENTS
        and head.templates <= CONSTANTS["ENSIO_BLOCK_TEMPLATES"]
    )
    lengths = [getattr(head, f"{name}_bytes") for name in _COLUMNS]
    templates_end = BLOCK.size + head.templates * TEMPLATE.size
    position = templates_end + head.events
    _require(position + sum(lengths) == len(block))
    raw = np.frombuffer(block, "u1")
    columns = {}
    for name, length in zip(_COLUMNS, lengths, strict=True):
        columns[name] = raw[position : position + length]
        position += length
    templates = raw[BLOCK.size : templates_end].view(TEMPLATE.dtype)
    return templates, raw[templates_end : templates_end + head.events], columns


def _require(sound: Any) -> None:
    if not sound:
        raise ValueError("the block's parts do not fit together")


def _numbers(column: np.ndarray, count: int) -> np.ndarray:
    """Decode the `count` numbers of a column, seven bits per byte, to uint64."""
    ends = np.flatnonzero(column < 0x80)
    _require(len(ends) == count and (len(column) == 0 if count == 0 else ends[-1] == len(column) - 1))
    if count == 0:
        return np.empty(0, "u8")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    _require(lengths.max() <= _MOST_NUMBER_BYTES)
    place = np.arange(len(column)) - np.repeat(starts, lengths)
    bits = (column & 0x7F).astype("u8") << (7 * place).astype("u8")
    return np.bitwise_or.reduceat(bits, starts)


def _unfolded(numbers: np.ndarray) -> np.ndarray:
    """Map 0, 1, 2, 3 … to 0, -1, 1, -2 …, in unsigned arithmetic."""
    return (numbers >> np.uint64(1)) ^ (np.uint64(0) - (numbers & np.uint64(1)))


def _given(column: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the column's differences where they are given, else 0."""
    places = np.flatnonzero(given)
    values = np.zeros(len(given), "u8")
    values[places] = _unfolded(_numbers(column, len(places)))
    return values


def _groups(slot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a stable order that groups equal slots, and for each element the begin of its group."""
    order = np.argsort(slot, kind="stable")
    ordered = slot[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return order, np.repeat(begins, np.diff(np.append(begins, len(slot))))


def _sums_of_groups(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Compute cumulative sums within each group."""
    sums = np.cumsum(values)
    of_group: np.ndarray = sums - (sums[first] - values[first])
    return of_group


def _decode_offsets(
    column: np.ndarray, place: np.ndarray, file: np.ndarray, moved: np.ndarray, events: np.ndarray
) -> None:
    chosen = np.flatnonzero(place != CONSTANTS["ENSIO_OFFSET_NONE"])
    distance = _given(column, place[chosen] == CONSTANTS["ENSIO_OFFSET_GIVEN"])
    if not len(chosen):
        return
    order, first = _groups((file[chosen] % np.uint64(CONSTANTS["ENSIO_FILE_SLOTS"])).astype("u2"))
    chosen, distance = chosen[order], distance[order]
    place = place[chosen]
    # Stride: the last distance given in the same group, or 0.
    index = np.arange(len(chosen))
    given = np.maximum.accumulate(np.where(place == CONSTANTS["ENSIO_OFFSET_GIVEN"], index, -1))
    last = np.where(given >= first, distance[given], np.uint64(0))
    steps = np.where(place == CONSTANTS["ENSIO_OFFSET_FOLLOWS"], np.uint64(0), last)
    advance = np.where(moved[chosen].view("i8") > 0, moved[chosen], np.uint64(0))
    steps[1:] += np.where(first[1:] == index[1:], np.uint64(0), advance[:-1])
    events["offset"][chosen] = _sums_of_groups(steps, first).view("i8")


def unshuffle(shuffled: Any, first: int, out: np.ndarray) -> None:
    """Undo the shuffle filter of HDF5, which stores the first bytes of all items before their second bytes.

    Parameters
    ----------
    shuffled : bytes-like
        Whole items.
    first : int
        Number of the first wanted item.
    out : ndarray, shape (n,), C-contiguous
        Receives n items.

    Raises
    ------
    ValueError
        There are fewer items.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.readers.native.job_file_codec import unshuffle
    >>> out = np.empty(2, "<u2")
    >>> unshuffle(bytes([1, 2, 3, 0, 0, 1]), 1, out)  # the items 1, 2 and 3 + 256
    >>> out
    array([  2, 259], dtype=uint16)
    """
    if _decode is None:
        numpy_unshuffle(shuffled, first, out)
    else:
        _decode.unshuffle(shuffled, first, out.itemsize, out.view("u1"))


def numpy_unshuffle(shuffled: Any, first: int, out: np.ndarray) -> None:
    """Undo the shuffle filter as `unshuffle`, in NumPy."""
    width = out.itemsize
    if len(shuffled) % width or first < 0 or len(out) > len(shuffled) // width - first:
        raise ValueError("there are fewer items")
    planes = np.frombuffer(shuffled, "u1").reshape(width, -1)
    out.view("u1").reshape(len(out), width)[:] = planes[:, first : first + len(out)].T


def decode_text(coded: bytes, known: bytes, length: int) -> bytes:
    """Decode a text that refers to a known text before it.

    Parameters
    ----------
    coded : bytes
    known : bytes
        The text before it, which copies may refer to.
    length : int
        Length of the decoded text, bytes.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        The text is damaged.
    """
    text, position, end = bytearray(known), 0, len(coded)
    wanted = len(known) + length
    while len(text) < wanted:
        # Inlined for speed: most numbers take one byte, and there are thousands of processes.
        if position < end and coded[position] < 0x80:
            literals, position = coded[position], position + 1
        else:
            literals, position = _number_at(coded, position)
        if literals > end - position:
            raise ValueError("a text ends too early")
        if literals:
            text += coded[position : position + literals]
            position += literals
        if position < end and coded[position] < 0x80:
            copied, position = coded[position], position + 1
        else:
            copied, position = _number_at(coded, position)
        if copied == 0:
            if literals == 0:
                raise ValueError("a text does not go on")
            continue
        distance, position = _number_at(coded, position)
        if not 0 < distance <= len(text) or copied > wanted - len(text):
            raise ValueError("a text leans on what is not there")
        begin = len(text) - distance
        piece = text[begin : begin + copied]
        text += piece if copied <= distance else (piece * -(-copied // distance))[:copied]
    if len(text) != wanted or position != len(coded):
        raise ValueError("the length of a text differs from its record")
    return bytes(text[len(known) :])


def _number_at(coded: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * _MOST_NUMBER_BYTES, 7):
        if position >= len(coded):
            break
        byte = coded[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ValueError("a text ends in the middle of a number")
