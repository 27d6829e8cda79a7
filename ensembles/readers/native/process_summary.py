from __future__ import annotations

import numpy as np

from ensembles.model.c_layout import CELL, CONSTANTS
from ensembles.model.events import COLUMNS, MISSING, Call, Events
from ensembles.model.units import HALF_INT64
from ensembles.readers.common.columns import LARGEST_NS
from ensembles.readers.native.account import sum_words
from ensembles.readers.native.spool import BLOCK_BYTES, Spool
from ensembles.readers.native.window_decoder import Decoding, decode, sound
from ensembles.summaries.bins import bin_edges_s
from ensembles.summaries.cells import LARGEST, CellSummary

_BLOCK_BINS = CONSTANTS["ENSIO_BLOCK_BINS"]

_CARRIED = "CARRIED_READ CARRIED_WRITE OPENED_TO_READ OPENED_TO_WRITE WAITS_FOR_DEVICE SAME_CALL"
CARRIED = sum(CONSTANTS[f"ENSIO_{name}"] for name in _CARRIED.split())
"""The flags of an event that the column ``carried`` has."""
_SAME = ("count", "errors", "moved", "time_ns", "inner_ns", "min_ns", "max_ns", "without_bin")


def read_summary(
    spool: Spool, decoding: Decoding, calls: tuple[Call, ...], files: list[str]
) -> tuple[CellSummary, int]:
    """Read the summary of a process, without the events that it does not include yet.

    `damaged`: number of cells that are left out: their values are impossible, or they are empty before the
    last one.
    """
    for _ in range(2):  # a running process may have changed a cell while it was read
        with spool.contents.opened() as contents:
            raw = [contents.read(part.length * CELL.size, part.position) for part in spool.cells]
            blocks = [contents.read(part.length * BLOCK_BYTES, part.position) for part in spool.blocks]
        used = [_array(part, CELL.dtype) for part in raw]
        lost = sum(int(np.count_nonzero(part["call"][:-1] == 0)) for part in used)
        cells = np.concatenate([np.empty(0, CELL.dtype), *used])
        counts = np.concatenate([np.empty(0, "u8"), *(_array(part, "u8") for part in blocks)])
        counts = counts.reshape(-1, _BLOCK_BINS)
        cells = cells[(cells["call"] != 0) & (cells["count"] > 0)]
        sound = _sound(cells, counts, decoding)
        if sound.all():
            break
    if not spool.head.folding:
        sound &= _has_sum(cells)
    summary = CellSummary(calls, files)
    if sound.any():
        summary.merge(_decoded(cells[sound], counts, decoding, calls, files))
    return summary, lost + int(len(cells) - np.count_nonzero(sound))


def _array(raw: bytes, dtype: np.dtype | str) -> np.ndarray:
    dtype = np.dtype(dtype)
    return np.frombuffer(raw, dtype, len(raw) // dtype.itemsize)


def _has_sum(cells: np.ndarray) -> np.ndarray:
    """Test which cells are as the recorder summed them, or have no sum."""
    words = cells.view("u1").reshape(len(cells), CELL.size)[:, : CELL.field_offset("largest")].copy()
    at = CELL.field_offset("sum")
    words[:, at : at + 4] = 0
    found: np.ndarray = (cells["sum"] == 0) | (cells["sum"] == sum_words(words.view("u8")))
    return found


def _sound(cells: np.ndarray, counts: np.ndarray, decoding: Decoding) -> np.ndarray:
    """Test which cells have possible values that agree with their bins: bool, shape (cells,)."""
    sound = sound_cells(cells, counts)
    sound &= (cells["time_ns"] <= LARGEST_NS) & (cells["inner_ns"] <= LARGEST_NS)
    for name in ("first_start", "last_end"):
        sound &= decoding.since(cells[name])[1]
    sound &= np.isfinite(cells["power4"]) & (cells["shift_ns"] <= cells["max_ns"])
    return sound


def sound_cells(cells: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Test which cells of a spool or job file have possible values: bool, shape (cells,).

    The bins of a cell hold its calls, but for the last one of a killed process, and bound their time.
    """
    sound: np.ndarray = (cells["count"] < 1 << 60) & (cells["blocks"].max(axis=1, initial=0) <= len(counts))
    for name in ("errors", "nested_count", "without_bin"):
        sound &= cells[name] <= cells["count"]
    sound &= (cells["moved"] < HALF_INT64) & (cells["carried_moved"] <= cells["moved"])
    sound &= (cells["min_ns"] <= cells["max_ns"]) & (cells["max_ns"] <= LARGEST_NS)
    sound &= (cells["time_ns"] < HALF_INT64) & (cells["inner_ns"] < HALF_INT64)
    sound &= (cells["nested_ns"] <= cells["time_ns"]) & (cells["min_requested"] <= cells["max_requested"])
    row, bins, n = histogram_of_blocks(cells[sound], counts)
    edges_ns, kinds = bin_edges_s() * 1e9, np.count_nonzero(sound)
    binned, least_ns, most_ns = (
        np.bincount(row, n * each, kinds) for each in (1.0, edges_ns[bins], edges_ns[bins + 1])
    )
    of = cells[sound]
    rest_ns = (np.maximum(of["count"] - binned, 0) + 1) * of["max_ns"]
    fits = (binned <= of["count"] + 1.0) & (of["time_ns"] + 1.0 * of["max_ns"] >= least_ns * (1 - 1e-9))
    sound[sound] = fits & (of["time_ns"] <= (most_ns + rest_ns) * (1 + 1e-9))
    return sound


def _decoded(
    cells: np.ndarray, counts: np.ndarray, decoding: Decoding, calls: tuple[Call, ...], files: list[str]
) -> CellSummary:
    part = CellSummary(calls, files)
    part.cells = {
        **plain_columns(cells, decoding.call_numbers),
        "start_ns": decoding.times_ns(decoding.since(cells["first_start"])[0]),
        "end_ns": decoding.times_ns(decoding.since(cells["last_end"])[0]),
        **_central(cells),
    }
    part.histogram = histogram_of_blocks(cells, counts)
    binned = np.bincount(part.histogram[0], part.histogram[2], len(cells)).astype(np.int64)
    part.cells["without_bin"] = np.maximum(part.cells["count"] - binned, 0)
    part.longest = _longest(cells, decoding, calls, files)
    return part


def _central(cells: np.ndarray) -> dict[str, np.ndarray]:
    """Compute mean and central sums of powers from sums of powers of deviations from the first duration."""
    n = cells["count"].astype(np.float64)
    beyond = (cells["time_ns"] - cells["count"] * cells["shift_ns"]).view("i8").astype(np.float64)
    d = beyond / n
    s2, s3, s4 = (cells[name] for name in ("power2", "power3", "power4"))
    return {
        "mean_ns": cells["shift_ns"] + d,
        "m2": np.maximum(s2 - n * d**2, 0.0),
        "m3": s3 - 3 * d * s2 + 2 * n * d**3,
        "m4": np.maximum(s4 - 4 * d * s3 + 6 * d**2 * s2 - 3 * n * d**4, 0.0),
    }


def _longest(
    cells: np.ndarray, decoding: Decoding, calls: tuple[Call, ...], files: list[str]
) -> tuple[np.ndarray, Events]:
    used = np.arange(LARGEST) < cells["count"][:, None]
    cell, place = np.nonzero(used)
    raw = cells["largest"][cell, place]
    kept = sound(decoding, raw)
    cell, place, raw = cell[kept], place[kept], raw[kept]
    columns = {name: np.empty(len(raw), kind) for name, kind in COLUMNS.items() if name not in MISSING}
    decode(decoding, 0, raw, columns)
    threads = cells["threads"][cell, place].astype(np.int64)
    columns["thread"][:] = np.minimum(decoding.first_thread + threads, 0xFFFF)
    columns["carried"] &= CARRIED
    return cell, Events(columns, calls, files)


def plain_columns(cells: np.ndarray, call_numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Make the columns of a `CellSummary` that need no clock."""
    return {
        "call": np.take(call_numbers, cells["call"], mode="clip").astype(np.int64),
        "size_class": cells["size_class"].astype(np.int64),
        "ordinal_class": cells["ordinal_class"].astype(np.int64),
        **{name: cells[name].astype(np.int64) for name in _SAME},
        "outer_count": (cells["count"] - cells["nested_count"]).astype(np.int64),
        "outer_moved": (cells["moved"] - cells["carried_moved"]).astype(np.int64),
        "outer_ns": (cells["time_ns"] - cells["nested_ns"]).astype(np.int64),
        "min_requested": cells["min_requested"],
        "max_requested": cells["max_requested"],
    }


def histogram_of_blocks(cells: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make a sparse histogram from the blocks of bins of cells."""
    cell, octave = np.nonzero(cells["blocks"])
    block = counts[cells["blocks"][cell, octave].astype(np.int64) - 1]
    row, column = np.nonzero(block)
    return cell[row], octave[row] * _BLOCK_BINS + column, block[row, column].astype(np.int64)
