"""Measure the import of Darshan's DXT segments against the DataFrames of PyDarshan."""

from __future__ import annotations

import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench import processor_s, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))
from made_darshan_logs import MadeLog

import ensembles as en
from ensembles.readers.foreign.darshan.source import DarshanImport

SHAPES = {"128 records of 8,000": (128, 8000), "5,000 records of 100": (5000, 100)}
REPEATS = 2


def make_log(path: Path, records: int, segments: int) -> None:
    """Write a log in which ranks write blocks, with durations of a busy file system."""
    random = np.random.default_rng(1)
    log = MadeLog(tasks=records, names={7: "/scratch/shared.dat"})
    rows = np.zeros(segments, [("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])
    parts = []
    for rank in range(records):
        duration = random.gamma(4.0, 0.001, segments)
        gap = random.gamma(1.0, 0.001, segments)
        rows["end"] = np.cumsum(duration + gap)
        rows["start"] = rows["end"] - duration
        rows["length"] = 1 << 20
        rows["offset"] = (np.arange(segments) * records + rank) << 20
        parts.append(struct.pack("<Qqq64sqq", 7, rank, 0, b"node", segments, 0) + rows.tobytes())
    log.parts["DXT_POSIX"] = b"".join(parts)
    log.streams = records
    log.write(path)


def by_pydarshan(path: Path) -> np.ndarray:
    """Return all segments with PyDarshan, (n, 5): rank, offset, length, start and end in seconds."""
    import darshan
    import pandas

    report = darshan.DarshanReport(str(path), read_all=False)
    report.mod_read_all_dxt_records("DXT_POSIX")
    frames = []
    for record in report.records["DXT_POSIX"].to_df():
        frames.append(record["write_segments"].assign(rank=record["rank"]))
    whole = pandas.concat(frames)
    return whole[["rank", "offset", "length", "start_time", "end_time"]].to_numpy()


def by_ensio(path: Path) -> np.ndarray:
    """Return all segments from the blocks of columns of the reader."""
    blocks = list(DarshanImport(str(path)).blocks(1 << 20))
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    end = columns["start"] + columns["duration"]
    return np.stack(
        [columns["rank"], columns["offset"], columns["moved"], columns["start"] * 1e-9, end * 1e-9], 1
    )


def by_opening(path: Path) -> np.ndarray:
    """Return all segments from the opened run, which is sorted and has all metadata."""
    events = en.open(path).events
    return np.stack([events.rank, events.offset, events.moved, events.start * 1e-9, events.end * 1e-9], 1)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rows: list[list[Any]] = []
    ways: dict[str, Callable[[Path], np.ndarray]] = {
        "PyDarshan, DataFrames": by_pydarshan,
        "ensio, columns": by_ensio,
        "ensio, opened": by_opening,
    }
    with tempfile.TemporaryDirectory(prefix="ensio-bench-") as folder:
        for shape, (records, segments) in SHAPES.items():
            path = Path(folder) / "log"
            make_log(path, records, segments)
            spent: dict[str, list[float]] = {name: [] for name in ways}
            found = {}
            for _ in range(REPEATS):
                for name, way in ways.items():
                    begin = sum(processor_s())
                    found[name] = way(path)
                    spent[name].append(sum(processor_s()) - begin)
            for name, way_found in found.items():
                np.testing.assert_allclose(
                    way_found, found["PyDarshan, DataFrames"], rtol=0, atol=1e-9, err_msg=name
                )
            base = min(spent["PyDarshan, DataFrames"]) / (records * segments)
            for name, times in spent.items():
                each = min(times) / (records * segments)
                size = f"{path.stat().st_size / (records * segments):.1f}"
                rows.append(
                    [shape, name, f"{each * 1e9:,.0f}", f"{1e-6 / each:.2f}", f"{base / each:.0f}", size]
                )
    table(
        "DXT segments, CPU time of all processes (minimum of two)",
        ["segments", "reader", "ns per segment", "M/s", "ratio", "bytes per segment in the log"],
        rows,
        "The imports of PyDarshan count once. The process of ensio that reads the log is included.",
    )


if __name__ == "__main__":
    main()
