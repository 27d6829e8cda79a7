"""Which calls `ensio split` refuses: their parts would take as long as they do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_spools import made_events, spool
from spool_writer import POSIX_CALLS

import ensembles as en
from ensembles.model.metadata import WAITS_FOR_DEVICE

NUMBER = {call.name: number for number, call in POSIX_CALLS.items()}


def run_of_writes(folder: Path, size: int, flags: str = "", share: float = 1.0) -> en.Run:
    """400 writes of two tasks; `share` of them to a file opened with these flags."""
    for rank in range(2):
        events = made_events(200, seed=rank)
        events["call"] = NUMBER["pwrite"]
        events["start"] = 10**9 + 10**7 * np.arange(200)
        events["duration"] = np.rint(1e6 * np.random.default_rng(rank).lognormal(0, 0.2, 200))
        events["requested"] = events["moved"] = size
        events["file"] = np.where(np.arange(200) < 200 * share, 1, 2)
        events["flags"] = np.where(events["file"] == 1, WAITS_FOR_DEVICE, 0) if flags else 0
        facts = {1: {"open.flags": flags}} if flags else {}
        spool(folder / f"{rank}.spool", [events], files={1: "/a", 2: "/b"}, rank=rank, tasks=2, facts=facts)
    return en.open(folder)


@pytest.mark.parametrize(
    ("size", "flags", "share", "reason"),
    [
        (100, "", 1.0, "calls of 100 B take a fixed time each"),
        (8191, "", 1.0, "take a fixed time each"),
        (65536, "O_SYNC", 1.0, "opened with O_SYNC: each waits for the device"),
        (65536, "O_SYNC", 0.2, None),
        (65536, "O_DIRECT", 1.0, None),
        (65536, "", 1.0, None),
    ],
)
def test_calls_whose_time_does_not_shrink_are_refused(
    tmp_path: Path, size: int, flags: str, share: float, reason: str | None
) -> None:
    run = run_of_writes(tmp_path, size, flags, share)
    ensemble = run.ensemble(op="write")
    split = ensemble.split([1, 8])
    assert split.refused is None if reason is None else reason in str(split.refused)
    assert "a k-th of the bytes takes a k-th of the time" in str(split.to_json()["assumes"])
    if reason is None:
        assert "Assumes that a k-th of the bytes" in " ".join(str(split).split())
    # One call is the answer of `tail`, whatever its parts would take.
    assert ensemble.split([1]).refused is None


def test_calls_without_bytes_are_refused(tmp_path: Path) -> None:
    """Half of the calls are syncs: more of them take more time."""
    for rank in range(2):
        events = made_events(400, seed=rank)
        events["call"][::2] = NUMBER["fsync"]
        events["requested"][::2] = events["moved"][::2] = 0
        events["requested"][1::2] = events["moved"][1::2] = 1 << 20
        spool(tmp_path / f"{rank}.spool", [events], files={1: "/a"}, rank=rank, tasks=2)
    run = en.open(tmp_path)
    reason = "these calls (sync) move no bytes that smaller calls could share"
    of_run = run.ensemble(op="sync")
    of_events = en.Ensemble(run.select(op="sync").duration * 1e-9, op="sync")
    for ensemble in (of_run, of_events):
        assert str(ensemble.split([1, 4], tasks=2).refused).startswith(reason)
    assert "move no bytes" not in str(run.ensemble(op="write").split([1, 4]).refused)
