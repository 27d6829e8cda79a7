"""Failed transfers do not count as requests, and a loss that two layers report is one loss."""

from __future__ import annotations

import json
from errno import EIO, ENOSPC
from pathlib import Path

import pytest
from made_io import KIB, Made, io_run

import ensembles as en
from ensembles.cli.main import main
from ensembles.diagnosis.finding import Finding
from ensembles.run.failures import lost_data_sentence


def small_requests(run: en.Run) -> Finding:
    return next(each for each in en.diagnose(run).findings if each.id == "small-requests")


def test_only_calls_that_moved_bytes_are_small_requests(tmp_path: Path) -> None:
    wrote = [Made("pwrite", 400, 64 * KIB, 64 * KIB * at) for at in range(8)]
    failed = [Made("pwrite", 300, 64 * KIB, 64 * KIB * at, error=ENOSPC) for at in range(8, 20)]
    lines = [Made("pwrite", 10, 40, 40 * at, 2) for at in range(500)]
    run = io_run(tmp_path / "run", [[*lines, *wrote, *failed]], {1: "/scratch/full", 2: "/scratch/log"})
    found = small_requests(run)
    assert "508 calls (500 of 40 B, 8 of 64.0 KiB)" in found.title
    assert found.evidence["calls"] == 508
    assert en.diagnose(run).lost_data.startswith("failed, so that files may lack data: pwrite: 12 × ENOSPC")


def test_a_loss_that_two_layers_report_is_one(tmp_path: Path) -> None:
    inner = Made("pwrite", 100, 64 * KIB, 0, error=EIO)
    outer = [Made("MPI_File_write_at", 120, 64 * KIB, 0, inside=(inner,), error=EIO)] * 3
    stdio = [Made("fwrite", 120, 64 * KIB, 0, 2, (Made("pwrite", 90, 64 * KIB, 0, 2, error=EIO),), error=EIO)]
    nested = io_run(tmp_path / "nested", [outer], {1: "/scratch/a", 2: "/scratch/b"})
    assert "pwrite: 3 × EIO on /scratch/a" in en.diagnose(nested).lost_data
    assert "MPI_File_write_at" not in en.diagnose(nested).lost_data
    streams = io_run(tmp_path / "streams", [stdio], {2: "/scratch/b"})
    assert en.diagnose(streams).lost_data.count("EIO") == 1
    # Not one inside the other: two losses.
    beside = [Made("MPI_File_write_at", 120, 64 * KIB, 0, error=EIO), inner]
    lost = en.diagnose(io_run(tmp_path / "beside", [beside], {1: "/scratch/a"})).lost_data
    assert "MPI_File_write_at: 1 × EIO" in lost
    assert "pwrite: 1 × EIO" in lost


@pytest.mark.parametrize(
    ("call", "error", "is_lost"),
    [
        ("H5Aclose", "EIO", False),
        ("H5Fclose", "EIO", True),
        ("H5Dwrite", "EIO", True),
        ("copy_file_range", "EBADF", False),
        ("sendfile_write", "EXDEV", False),
        ("copy_file_range", "ENOSPC", True),
        ("write", "EBADF", True),
    ],
)
def test_what_can_be_done_without_loses_nothing(call: str, error: str, is_lost: bool) -> None:
    """NetCDF closes attributes twice, cat tries to copy to the end of a file: the files are whole."""
    op, layer = "close" if call.endswith("close") else "write", "hdf5" if call[0] == "H" else "posix"
    row = {"call": call, "layer": layer, "op": op, "error": error, "count": 3, "file": None, "inside": 3}
    row |= {
        "file_count": 0,
        "first_rank": 0,
        "last_rank": 0,
        "first_s": 0.6,
        "last_s": 0.6,
        "is_search": False,
    }
    assert (f"{call}: 3 × {error}" in lost_data_sentence([row], tasks=1)) == is_lost
    assert lost_data_sentence([row | {"file": "/dev/infiniband/rdma_cm"}], tasks=1) == ""
    assert (lost_data_sentence([row | {"file": "/dev/shm/a"}], tasks=1) != "") == is_lost


@pytest.mark.parametrize("chosen", [["--where", "failed"], ["--where", "error=ENOSPC"]])
def test_nothing_is_idle_between_failed_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chosen: list[str]
) -> None:
    failed = Made("pwrite", 10, 4 * KIB, 0, error=ENOSPC)
    slow = [failed, Made("pwrite", 5000, 4 * KIB, 0), Made("MPI_Barrier", 5)]
    fast = [Made("pwrite", 1000, 4 * KIB, 0), failed, Made("MPI_Barrier", 4005)]
    run = io_run(tmp_path / "run", [slow * 3, fast * 3])
    assert main(["phases", run.path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lost_s"] > 0
    assert main(["phases", run.path, *chosen, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["lost_s"], found["lost_share"], found["collective"]) == (None, None, None)
    assert found["phases"]
    assert {(each["lost_s"], each["lost_share"], each["calls"]) for each in found["phases"]} == {
        (None, None, 2)
    }
    assert main(["phases", run.path, *chosen]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert found["why_no_idle"] in text
    assert "Idle, because" not in text
    assert "came last" not in text


@pytest.mark.parametrize(("below", "is_said"), [(2 * KIB, True), (60 * KIB, False)])
def test_the_table_of_files_says_whose_bytes_are_shown_where_a_library_compresses_them(
    tmp_path: Path, below: int, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = Made("pwrite", 100, below, 0)
    io_run(tmp_path / "run", [[Made("H5Dwrite", 400, 64 * KIB, 0, inside=(stored,))] * 3], {1: "/scratch/a"})
    for more in ([], ["--layer", "posix"]):
        assert main(["files", str(tmp_path / "run"), *more]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("these moved 6.00 KiB for 192 KiB" in said) == (is_said and not more)
