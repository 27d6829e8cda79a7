"""trace.h5 can be compressed in several ways; HDF5's own tools read what is made without asking."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_spools import made_events, spool

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.events import COLUMNS
from ensembles.writers.tracefile import events as event_writer
from ensembles.writers.tracefile.filters import FILTERS

NUMBERS = {"gzip": 1, "lzf": 32000, "zstd": 32015, "blosc": 32001}
"""As The HDF Group registered them."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    spool(tmp_path / "run/s.spool", [made_events(3000)], rank=0)
    return tmp_path / "run"


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_keeps_every_event(
    folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.h5"
    assert main(["collect", str(folder), "-o", str(out), "--format", name]) == 0
    told = capsys.readouterr().err
    assert ("other programs need" in told) == (name not in ("gzip", "none"))
    with h5py.File(out) as file:
        for column in COLUMNS:
            settings = file["events"][column].id.get_create_plist()
            used = [settings.get_filter(place)[0] for place in range(settings.get_nfilters())]
            assert NUMBERS[name] in used if name in NUMBERS else not used
    expected = made_events(3000)
    events = en.open(out).events
    for column in ("offset", "requested", "moved", "duration"):
        np.testing.assert_array_equal(getattr(events, column), expected[column])
    assert len(en.open(out).select(rank=0)) == 3000


def test_the_tools_of_an_old_hdf5_read_gzip_and_none(folder: Path, tmp_path: Path) -> None:
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump (hdf5-tools) is not installed")
    starts = en.open(folder).events.start.tolist()
    for name in ("gzip", "none"):
        main(["collect", str(folder), "-o", str(tmp_path / "out.h5"), "--format", name])
        command = ["h5dump", "-y", "-w", "1", "-d", "/events/start", str(tmp_path / "out.h5")]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        data = printed.split("DATA {")[1].split("}")[0]
        assert [int(line.strip(" ,")) for line in data.split("\n") if line.strip()] == starts


def test_where_a_filter_is_missing_that_is_said(folder: Path, tmp_path: Path) -> None:
    main(["collect", str(folder), "-o", str(tmp_path / "out.h5"), "--format", "zstd"])
    program = (
        "import sys\n"
        "sys.modules['hdf5plugin'] = None\n"  # importing it fails
        "from ensembles.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    for command, sentence in (
        (["events", "out.h5"], "out.h5 is compressed by HDF5's filter 32015"),
        (["collect", "run", "--format", "blosc"], "the filter blosc needs hdf5plugin"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"ensio: {sentence}")
        assert done.stderr.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["s.spool"]


@pytest.mark.parametrize("name", ["zstd", "blosc"])
@pytest.mark.parametrize("before", ["import netCDF4", "import netCDF4, hdf5plugin"])
def test_filters_work_after_an_import_of_netcdf4(folder: Path, name: str, before: str) -> None:
    """netCDF4 puts its own filters in the way; the folders that HDF5 searches stay as they were."""
    if importlib.util.find_spec("netCDF4") is None:
        pytest.skip("netCDF4 is not installed: its filters are not tested")
    program = (
        f"{before}\n"
        "import sys\n"
        "from h5py import h5pl\n"
        "folders = [h5pl.get(place) for place in range(h5pl.size())]\n"
        "from ensembles.cli.main import main\n"
        f"code = main(['collect', '.', '-o', '../out.h5', '--filter', '{name}'])\n"
        "assert folders and folders == [h5pl.get(place) for place in range(h5pl.size())]\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(
        en.open(folder.parent / "out.h5").events.offset, made_events(3000)["offset"]
    )


def test_a_filter_that_is_in_use_is_not_replaced(folder: Path) -> None:
    if importlib.util.find_spec("netCDF4") is None:
        pytest.skip("netCDF4 is not installed: its filters are not tested")
    main(["collect", str(folder), "-o", str(folder.parent / "blosc.h5"), "--format", "blosc"])
    program = (
        "import netCDF4, h5py, sys\n"
        "column = h5py.File('../blosc.h5')['events/offset']\n"
        "column[:3]\n"
        "from ensembles.cli.main import main\n"
        "code = main(['collect', '.', '-o', '../out.h5', '--format', 'blosc'])\n"
        "column[3:]\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("ensio: HDF5 uses a filter blosc of another package in this process")
    assert done.stderr.count("\n") == 1
    assert not (folder.parent / "out.h5").exists()


@given(
    dtype=st.sampled_from(sorted({str(dtype) for dtype in COLUMNS.values()})),
    count=st.integers(1, 3000),
    seed=st.integers(0, 2**32),
    bits=st.integers(0, 64),
)
def test_hdf5_inflates_what_is_deflated_here(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, count: int, seed: int, bits: int
) -> None:
    """Constant columns, noise in some low bytes, and noise in all; with ISA-L and with zlib."""
    rows = 3000
    random = np.random.default_rng(seed)
    values = (random.integers(0, 1 << 63, count, dtype="u8") >> np.uint64(63 - min(bits, 63))).astype(dtype)
    for engine in (event_writer._deflate, event_writer.zlib):
        with (
            pytest.MonkeyPatch.context() as patch,
            h5py.File("memory", "w", driver="core", backing_store=False) as file,
        ):
            patch.setattr(event_writer, "_deflate", engine)
            data = file.create_dataset("x", (rows,), dtype, chunks=(rows,), compression="gzip", shuffle=True)
            deflater = event_writer.ColumnDeflater(rows)
            for _ in range(2):  # the second time it may be known
                data.id.write_direct_chunk((0,), deflater.deflate(values))
                np.testing.assert_array_equal(data[:count], values)
                assert not data[count:].any()


def test_noise_is_stored_as_it_is() -> None:
    noise = np.frombuffer(np.random.default_rng(0).bytes(1 << 20), "u8")
    made = event_writer.ColumnDeflater(1 << 17).deflate(noise)
    assert noise.nbytes < len(made) < noise.nbytes * 1.001
