"""Time inside HDF5 that is not in the file system: compression and conversion, in runs made call by call."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from made_io import KIB, MIB, Made, found_ids, io_run, refusal

import ensembles as en
from ensembles.cli.main import main
from ensembles.diagnosis.finding import Finding

H5 = {1: "/scratch/out.h5", 2: "/scratch/log"}
CHUNKS = 16


def compressed(own_us: float = 20_000, ratio: int = 4, inside: bool = True, file: int = 1) -> list[Made]:
    """Chunks of 1 MiB: the call works on each before it writes what is left of it."""
    calls = [Made("open", 20, file=file), Made("fwrite", 20, 100, file=2)]
    for chunk in range(CHUNKS):
        pieces = [Made("pwrite", 200, MIB // ratio, chunk * MIB, file=file)] if inside else []
        calls.append(Made("H5Dwrite", own_us + 200, MIB, inside=pieces, file=file))
    return calls


def finding(run: en.Run) -> Finding:
    (found,) = (each for each in en.diagnose(run).findings if each.id == "hdf5-filters")
    return found


def words(text: str) -> str:
    return " ".join(text.split())


def test_time_in_calls_of_hdf5_that_is_in_no_storage_call_is_compression(tmp_path: Path) -> None:
    found = finding(io_run(tmp_path / "a", [compressed()], H5))
    # Without a filter, bytes are still copied.
    assert 0.9 * CHUNKS * 0.020 < found.evidence["hdf5_time_s"] < CHUNKS * 0.020
    account = en.diagnose(io_run(tmp_path / "b", [compressed()], H5)).account
    assert account is not None
    assert account.entries[0].time_s == pytest.approx(found.evidence["hdf5_time_s"])
    assert found.evidence["asked_bytes"] == 4 * found.evidence["moved_bytes"] == CHUNKS * MIB
    assert found.severity == "critical"
    assert found.gain_s == pytest.approx((0.0, CHUNKS * 0.020))
    assert found.where.calls == ("H5Dwrite",)
    assert found.where.files == (H5[1],)
    assert "ms in compression" in found.title
    assert "H5Pset_deflate" in found.advice


def test_severity_of_filters_is_of_the_run(tmp_path: Path) -> None:
    """Like all shares, theirs are of the run, with the imports of Python."""
    severities = []
    for number, imports_s in enumerate((0.0, 0.6, 2.0, 5.0, 20.0)):
        imports = Made("open", 5, file=2, gap_us=1e6 * imports_s)
        run = io_run(tmp_path / str(number), [[imports, *compressed()]], H5)
        severities += [each.severity for each in en.diagnose(run).findings if each.id == "hdf5-filters"]
    # In the end it is hardly a part of the run.
    assert severities == ["critical"] * 2 + ["warning", "note"]


@pytest.mark.parametrize("name", ["H5Dwrite", "H5Dread"])
def test_time_on_bytes_that_do_not_get_fewer_shows_no_filter(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies, page faults and conversion look alike in a record: the library has the time."""
    inner = {"H5Dwrite": "pwrite", "H5Dread": "pread"}[name]
    calls = [Made(name, 70_000, MIB, inside=[Made(inner, 200, MIB, chunk * MIB)]) for chunk in range(CHUNKS)]
    run = io_run(tmp_path / "a", [calls], H5)
    assert "hdf5-filters" not in found_ids(run)
    (undecided,) = (each for each in en.diagnose(run).not_examined if each.id == "hdf5-filters")
    assert undecided.at_most_s == pytest.approx(CHUNKS * 69.8e-3, rel=0.01)
    assert main(["diagnose", run.path]) == 0
    assert f"inside libraries, most in {name}" in words(capsys.readouterr().out)


@pytest.mark.parametrize(("own_us", "ratio"), [(6_000, 1), (3_000, 4)], ids=["copies", "next to nothing"])
def test_copies_are_no_finding(own_us: float, ratio: int, tmp_path: Path) -> None:
    found = en.diagnose(io_run(tmp_path / "a", [compressed(own_us, ratio)], H5))
    assert "hdf5-filters" not in [each.id for each in found.findings]
    # Only the calls that are too short for a filter exclude it.
    assert ("hdf5-filters" in found.examined) == (own_us < 5_000)


def test_calls_that_cost_the_same_whatever_their_bytes_are_no_filters(tmp_path: Path) -> None:
    calls = [Made("H5Dwrite", 15, 8) for _ in range(4000)]
    calls.append(Made("H5Dwrite", 300, 8, inside=[Made("pwrite", 200, 64 * KIB, 0)]))
    assert "hdf5-filters" not in found_ids(io_run(tmp_path / "a", [calls], H5))


def test_without_the_storage_calls_inside_nothing_is_known_of_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = io_run(tmp_path / "a", [compressed(inside=False)], H5)
    assert "hdf5-filters" not in found_ids(run)
    diagnosis = en.diagnose(run)
    assert [each.in_library for each in diagnosis.most_time] == [False]
    assert main(["info", run.path]) == 0
    assert "inside HDF5" not in capsys.readouterr().out
    only = io_run(tmp_path / "b", [[Made("H5Dwrite", 9_000, MIB)]], H5)
    assert "layer posix too" in refusal(only, "hdf5-filters")


def test_work_that_is_done_again_is_the_finding_of_what_repeats_it(tmp_path: Path) -> None:
    calls = []
    for chunk in range(CHUNKS):
        inside = [Made("pread", 200, MIB, chunk * MIB), Made("pwrite", 300, MIB, chunk * MIB)]
        calls.append(Made("H5Dwrite", 50_000, MIB, inside=inside))
    found = found_ids(io_run(tmp_path / "a", [calls], H5))
    assert "hdf5-refill" in found
    assert "hdf5-filters" not in found


@pytest.mark.parametrize("passes", [1, 25])
def test_of_chunks_that_pass_filters_again_only_one_pass_is_that_of_filters(
    passes: int, tmp_path: Path
) -> None:
    """Columns of compressed rows: fewer bytes than those of the program, each of them many times."""
    calls = []
    for _ in range(25):
        again = not calls or passes > 1
        inside = [Made("pread", 50, 64 * KIB, chunk * 64 * KIB) for chunk in range(2 * again)]
        calls.append(Made("H5Dread", 20_000, MIB, inside=inside))
    run = io_run(tmp_path / "a", [calls], H5)
    assert finding(run).evidence["hdf5_time_s"] == pytest.approx(25 * 0.019 / passes, rel=0.02)
    assert ("hdf5-refill" in found_ids(run)) == (passes > 1)
    if passes > 1:
        (refill,) = (each for each in en.diagnose(run).findings if each.id == "hdf5-refill")
        assert refill.evidence["read_bytes"] == passes * refill.evidence["read_needed_bytes"]
        assert refill.likely_s > 0.8 * 25 * 0.020


def test_waiting_in_parallel_hdf5_costs_confidence(tmp_path: Path) -> None:
    calls = []
    for chunk in range(CHUNKS):
        write = Made("MPI_File_write_at", 250, MIB // 4, inside=[Made("pwrite", 200, MIB // 4, chunk * MIB)])
        calls.append(Made("H5Dwrite", 20_000, MIB, inside=[write]))
    alone = finding(io_run(tmp_path / "a", [compressed()] * 2, H5))
    together = finding(io_run(tmp_path / "b", [calls] * 2, H5))
    assert together.confidence == pytest.approx(0.8 * alone.confidence)


def test_info_diagnosis_and_report_say_what_passed_inside_hdf5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = io_run(tmp_path / "a", [[*compressed(), Made("fsync", 100_000, file=2)]], H5)
    assert main(["info", run.path, "--json"]) == 0
    (inside,) = json.loads(capsys.readouterr().out)["in_libraries"]
    storage_s = CHUNKS * 200e-6
    io_s = CHUNKS * 0.020 + storage_s + 40e-6 + 0.100
    assert inside["layer"] == "hdf5"
    assert inside["time_s"] == pytest.approx(CHUNKS * 0.020)
    assert inside["io_share"] == pytest.approx(CHUNKS * 0.020 / io_s)
    assert inside["calls"] == [
        {
            "call": "H5Dwrite",
            "time_s": pytest.approx(CHUNKS * 0.020),
            "whole_s": pytest.approx(CHUNKS * 0.020 + storage_s),
        }
    ]
    assert main(["info", run.path]) == 0
    told = words(capsys.readouterr().out)
    share = "76 % of the time in I/O calls inside HDF5, not in the file system"
    sentence = "320 ms of the 423 ms in I/O calls (76 %) passed inside HDF5, not in the file system"
    most = "Most of it: 320 ms of 323 ms in H5Dwrite"
    for text in (share, sentence, most):
        assert text in told
    assert main(["diagnose", run.path]) == 0
    named = (
        "76 % in 16 calls of H5Dwrite, 24 % in 1 call of fsync; the time in H5Dwrite passed inside HDF5, "
        "not in the file system"
    )
    assert named in words(capsys.readouterr().out)
    page = tmp_path / "a.html"
    assert main(["report", run.path, "-o", str(page)]) == 0
    shown = words(html.unescape(page.read_text(encoding="utf-8")))
    for text in (
        share,
        sentence,
        most,
        named,
        "hdf5-filters",
        "4.00 MiB by storage calls inside libraries, for 16.0 MiB",
    ):
        assert text in shown
