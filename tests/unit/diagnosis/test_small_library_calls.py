"""Small calls of libraries, whose cost is in the library: nothing of it reaches the storage."""

from __future__ import annotations

from pathlib import Path

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


def test_a_loop_of_an_interpreter_around_small_calls_is_named_beside_little_io(tmp_path: Path) -> None:
    """As of h5py, which works on each of them outside of the call."""
    loop = [Made("H5Dwrite", 20, KIB, gap_us=500.0)] * 2000
    (found,) = (each for each in en.diagnose(io_run(tmp_path / "a", [loop])).findings if each.id == "not-io")
    assert "a loop of 2,000 calls of 1.00 KiB on average fills 1.04 s" in found.advice
    large = [Made("H5Dwrite", 20, MIB, gap_us=500.0)] * 2000
    assert "loop" not in str(en.diagnose(io_run(tmp_path / "b", [large])).findings[0].advice)


def test_time_that_filters_may_take_for_the_bytes_is_not_certain(tmp_path: Path) -> None:
    found = small_requests(io_run(tmp_path / "a", [rows(60, 4 * KIB)]))
    assert found is None or found.gain_s[0] == 0
    # Large calls, and few, have none of it.
    assert small_requests(io_run(tmp_path / "b", [rows(150, MIB)])) is None
    assert small_requests(io_run(tmp_path / "c", [rows(150, KIB, 7)])) is None
