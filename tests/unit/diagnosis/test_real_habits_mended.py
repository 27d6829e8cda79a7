"""Rules whose statistics real programs corrected: small pieces, re-opened files, reads from memory, DXT."""

from __future__ import annotations

from pathlib import Path

import darshan
import pytest
from made_io import KIB, MIB, Made, found_ids, io_run, refusal

import ensembles as en

LOGS = Path(darshan.__file__).parent / "examples" / "example_logs"


def finding(run: en.Run, cause: str):
    (one,) = (each for each in en.diagnose(run).findings if each.id == cause)
    return one


def test_pieces_of_a_page_cost_the_work_on_their_pages(tmp_path):
    """Of 1 KiB writes to memory three take 0.7 us, and one that begins a page 2.7 us: 1.2 us on average."""
    calls = [Made("pwrite", 2.7 if n % 4 == 0 else 0.7, KIB, n * KIB, gap_us=0.05) for n in range(4000)]
    found = finding(io_run(tmp_path / "a", [calls]), "small-requests")
    assert found.severity != "note"
    low, high = found.gain_s
    # Copying 1 KiB takes 0.25 us at 4 GB/s, and four requests of 1 MiB are left.
    assert low < 4000 * (1.2 - 0.25) * 1e-6 < high


def test_a_file_that_stays_open_is_not_closed_either(tmp_path):
    calls = [call for _ in range(100) for call in (Made("open", 100), Made("close", 80))]
    found = finding(io_run(tmp_path / "a", [calls]), "metadata-storm")
    assert found.evidence["repeated"] == 99
    low, high = found.gain_s
    # Closes may write what the cache holds, so they are not certain.
    assert low <= 99 * 100e-6
    assert high >= 99 * 180e-6 * 0.99


@pytest.mark.parametrize(
    ("files", "size", "is_storm"), [(64, KIB, True), (8, KIB, False), (64, 64 * MIB, False)]
)
def test_small_files_that_every_task_opens(files, size, is_storm, tmp_path):
    names = {number: f"/scratch/part{number}" for number in range(1, files + 1)}
    calls = [
        call
        for number in names
        for call in (
            Made("open", 300, file=number),
            Made("pread", 50, size, 0, number),
            Made("close", 50, file=number),
        )
    ]
    run = io_run(tmp_path / "a", [calls] * 4, names)
    assert ("metadata-storm" in found_ids(run)) == is_storm
    if is_storm:
        found = finding(run, "metadata-storm")
        assert found.where.file_count == files
        # One of four tasks has to open each of them.
        assert found.gain_s[0] <= files * 350e-6 * 0.75 <= found.gain_s[1]


@pytest.mark.parametrize(("us", "is_worth_it"), [(100, False), (20_000, True)])
def test_reads_from_memory_gain_nothing_from_messages(us, is_worth_it, tmp_path):
    """1 MiB in 100 us comes from memory at 10 GB/s; in 20 ms from a disk."""
    calls = [Made("pread", us, MIB, number * MIB) for number in range(16)]
    found = found_ids(io_run(tmp_path / "a", [calls] * 4))
    assert (found.get("redundant-reads", "note") != "note") == is_worth_it


def test_load_of_others_delays_syncs_too(tmp_path):
    calls = [call for n in range(4) for call in (Made("pwrite", 10, MIB, n * MIB), Made("fsync", 50_000))]
    assert "load of other jobs" in refusal(io_run(tmp_path / "a", [calls]), "interference")


def test_calls_of_mpi_without_posix_calls_inside_are_requests(tmp_path):
    calls = [Made("MPI_File_write_at", 40, KIB, number * KIB) for number in range(300)]
    assert finding(io_run(tmp_path / "a", [calls]), "small-requests").where.layer == "mpiio"


def test_what_dxt_does_not_trace_is_not_clean():
    said = en.diagnose(en.open(str(LOGS / "ior_hdf5_example.darshan")))
    reasons = {each.id: each.reason for each in said.not_examined if each.applies}
    for cause in ("close-cost", "sync-per-write", "stdio-buffer"):
        assert "DXT traces only reads and writes" in reasons[cause]
    assert "metadata-storm" in said.examined  # by the counters


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sample-badost.darshan", {"slow-target": "critical"}),
        ("sample-goodost.darshan", {}),
        ("dxt.darshan", {}),  # its counters hold more time than its calls: not-io is refused
        ("noposix.darshan", {"not-io": "note"}),  # STDIO alone, seconds of hours
        ("ior_hdf5_example.darshan", {}),
    ],
)
def test_logs_that_ship_with_pydarshan(name, expected):
    (path,) = list(Path(darshan.__file__).parent.rglob(name))[:1]
    run = en.open(str(path))
    assert found_ids(run) == expected
    if name == "dxt.darshan":
        reasons = {each.id: each.reason for each in en.diagnose(run).not_examined}
        assert "the counters hold" in reasons["not-io"]
    if name == "sample-badost.darshan":
        found = finding(run, "slow-target")
        assert found.evidence["target"] == 14
        assert found.gain_s[0] > 0.6 * run.counters.run_time_s
