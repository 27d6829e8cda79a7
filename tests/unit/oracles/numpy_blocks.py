"""Decoding of blocks of events of a job file, in NumPy: what `_compiled.decode_block` gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.model.c_layout import BLOCK, CONSTANTS, TEMPLATE
from ensembles.readers.native.job_file_codec import BLOCK_EVENTS

_COLUMNS = ("start", "duration", "file", "requested", "moved", "offset")
_MOST_NUMBER_BYTES = 10


def decode_block(block: Any, out: np.ndarray) -> int:
    """Decode one block without checking the checksum."""
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
    for name in ("call", "depth", "flags", "site"):
        events[name] = templates[name][number_of]
    duration = _numbers(columns["duration"], count)
    events["duration"] = duration
    steps = _unfolded(_numbers(columns["start"], count))
    steps[1:] += duration[:-1]
    events["start"] = np.cumsum(steps)
    file = np.cumsum(_given(columns["file"], shape & CONSTANTS["ENSIO_GIVEN_FILE"]))
    wide = file > 0xFFFF  # before version 3
    _require(file.max() <= 0xFFFFFFFF and not events["site"][wide].any())
    events["file"] = file & np.uint64(0xFFFF)
    events["site"][wide] = file[wide] >> np.uint64(16)
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
