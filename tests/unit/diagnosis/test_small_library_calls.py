"""Small calls of libraries, whose cost is in the library: nothing of it reaches the storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_io import KIB, MIB, Made, io_run

import ensembles as en
from ensembles.diagnosis.finding import Finding


def small_requests(run: en.Run) -> Finding | None:
    return next((each for each in en.diagnose(run).findings if each.id == "small-requests"), None)


def rows(us: float, size: int, count: int = 1000) -> list[Made]:
    """A plane row by row; HDF5 writes it when its chunk cache is full."""
    each = Made("nc_put_vara", us, size, inside=[Made("H5Dwrite", us / 3, size)])
    return [*[each] * count, Made("pwrite", 500, count * size, 0)]


def test_many_small_calls_of_a_library_cost_time_in_it(tmp_path: Path) -> None:
    found = small_requests(io_run(tmp_path / "a", [rows(150, KIB)]))
    assert found is not None
    assert found.severity == "critical"
    assert found.where.calls == ("nc_put_vara",)
    assert found.title.startswith("small requests: 1,000 calls of 1.00 KiB, ")
    assert "inside HDF5 and netCDF" in found.title
    low, high = found.gain_s
    assert 0.08 < low < 0.14 < high
    assert "larger pieces in each call" in found.advice


@pytest.mark.parametrize(("chunk", "is_small"), [(64 * KIB, False), (KIB, True)])
@pytest.mark.parametrize("op", ["read", "write"])
def test_calls_that_move_a_chunk_for_a_few_bytes_are_no_small_requests(
    tmp_path: Path, chunk: int, is_small: bool, op: str
) -> None:
    """As of a column of chunks that a filter compresses: the time is that of the chunk."""
    inside = {"read": "pread", "write": "pwrite"}[op]
    calls = [
        Made(f"H5D{op}", 3000, 4 * KIB, inside=[Made(inside, 20, chunk, at * chunk)]) for at in range(16)
    ]
    assert (small_requests(io_run(tmp_path / "a", [calls])) is not None) is is_small


@pytest.mark.parametrize("name", ["H5Dwrite", "fwrite", "pwrite", "open"])
def test_time_between_calls_is_no_gain_and_does_not_hide_that_the_run_is_no_io(
    name: str, tmp_path: Path
) -> None:
    """1 % of the run is in calls of which there are many, as of a program that computes for each record."""
    loop = [Made(name, 2, KIB * (name != "open"), gap_us=200)] * 2000
    diagnosis = en.diagnose(io_run(tmp_path / "run", [loop]))
    assert "not-io" in {each.id for each in diagnosis.findings}
    assert all(each.gain_s[1] <= 2000 * 2e-6 for each in diagnosis.findings)


def test_time_that_filters_may_take_for_the_bytes_is_not_certain(tmp_path: Path) -> None:
    found = small_requests(io_run(tmp_path / "a", [rows(60, 4 * KIB)]))
    assert found is None or found.gain_s[0] == 0
    # Large calls, and few, have none of it.
    assert small_requests(io_run(tmp_path / "b", [rows(150, MIB)])) is None
    assert small_requests(io_run(tmp_path / "c", [rows(150, KIB, 7)])) is None


def test_advice_for_files_that_are_read_in_order_is_named(tmp_path: Path) -> None:
    """POSIX_FADV_RANDOM switches read-ahead off, and the record does not have which advice it was."""
    reads = [Made("pread", 200, 4 * KIB, 4 * KIB * at) for at in range(500)]
    for calls, is_named in (([Made("posix_fadvise", 2), *reads], True), (reads, False)):
        found = small_requests(io_run(tmp_path / str(is_named), [calls]))
        assert found is not None
        assert ("POSIX_FADV_RANDOM" in found.advice) is is_named
        assert found.evidence.get("posix_fadvise_calls", 0) == is_named


@pytest.mark.parametrize("name", ["H5Dread", "H5Dwrite", "nc_put_vara", "H5Gcreate"])
def test_time_of_data_inside_a_library_may_be_that_of_filters_and_is_not_that_of_many_calls(
    name: str, tmp_path: Path
) -> None:
    inside = [Made("pread" if name == "H5Dread" else "pwrite", 2, 40 * KIB, 0)]
    size = 0 if name == "H5Gcreate" else 40 * KIB
    diagnosis = en.diagnose(io_run(tmp_path / "run", [[Made(name, 400, size, inside=inside)] * 300]))
    found = [each for each in diagnosis.findings if each.id == "fewer-calls"]
    assert [each.advice[:18] for each in found] == ["make fewer objects"] * (not size)
    assert diagnosis.account is not None
    assert not size or any(each.id == "library" for each in diagnosis.account.entries)


def test_time_between_objects_may_go_with_them_but_for_what_other_findings_mend(tmp_path: Path) -> None:
    make = Made("H5Gcreate", 400, gap_us=200, inside=[Made("pwrite", 40, 40 * KIB, 0)])
    write = [Made("pwrite", 300, KIB, KIB * at) for at in range(2000)]
    for calls, least_s, most_s in (
        ([make] * 300, 0.07, 0.073),  # 240 µs for each of the 299 others
        ([Made("pwrite", 9e4, MIB), *[make] * 300, Made("pwrite", 9e4, MIB)], 0.07, 0.073),
        ([*[make] * 150, *write, *[make] * 150], 0.07, 0.15),  # small requests have 0.6 s
    ):
        found = en.diagnose(io_run(tmp_path / str(len(calls)), [calls])).findings
        (finding,) = (each for each in found if each.id == "fewer-calls")
        assert least_s < finding.evidence["between_s"] < most_s
