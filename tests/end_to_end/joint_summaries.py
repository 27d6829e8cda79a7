"""What a job file's summary is to be equal to: the spools of the same run, put together by Python."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import ensembles
from ensembles.model.c_layout import SPOOL
from ensembles.readers.native.job_file import read_job_file
from ensembles.summaries.cells import CELL_DTYPES, CENTRAL, CellSummary


def apart(run: Path, folder: Path) -> tuple[ensembles.Run, ensembles.Run]:
    """A run that kept both, twice: its job file alone, and its spools alone.

    Spools go on to renew their readings of the clock, by which ticks become ns: they are given those that the
    job file has, so that the same ticks are the same ns.
    """
    collected, spools = folder / "collected", folder / "spools"
    collected.mkdir()
    spools.mkdir()
    shutil.copy(run / "job.ensio", collected)
    heads = {spool.name: spool.head for spool in read_job_file(str(run / "job.ensio"))}
    paths = sorted(run.glob("*.spool"))
    assert set(heads) == {path.name for path in paths}
    for path in paths:
        content = bytearray(path.read_bytes())
        head = np.frombuffer(content, SPOOL.dtype, 1)
        for name in ("ticks", "monotonic_ns", "realtime_ns"):
            head["last"][name] = getattr(heads[path.name], f"last_{name}")
        head["last_is_spare"] = 0
        (spools / path.name).write_bytes(content)
    return ensembles.open(collected), ensembles.open(spools)


def assert_same_summary(found: CellSummary, expected: CellSummary) -> None:
    """Counts, sums, limits, bins and longest calls to the last bit, moments to rounding."""
    assert found.count == expected.count
    assert found.calls == expected.calls
    for name in CELL_DTYPES:
        ours, theirs = found.cells[name], expected.cells[name]
        if name in CENTRAL:
            power = {"mean_ns": 1, "m2": 2, "m3": 3, "m4": 4}[name]
            size = expected.cells["max_ns"].astype(float) ** power
            size *= expected.cells["count"] if power > 1 else 1
            assert (np.abs(ours - theirs) <= 1e-10 * size + 1e-6).all(), name
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
    for ours, theirs in zip(found.histogram, expected.histogram, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(found.longest[0], expected.longest[0])
    ours, theirs = found.longest[1], expected.longest[1]
    for name, column in theirs.columns.items():
        if name != "file":
            np.testing.assert_array_equal(ours.columns[name], column, err_msg=name)
    assert [found.files[number] for number in ours.file] == [expected.files[number] for number in theirs.file]
