"""Runs of ensio-replay on plans that tests write: building it, starting it, and what its files must hold."""

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import h5py
import numpy as np
from places import ENSIO_CC, PATIENCE_S, PRELOAD, ROOT
from plans import Row

from ensembles.cli.replay_program import ANY_TASKS

SOURCES = ROOT / "testbed" / "replay"
SEED = 987654321987654321


def build_replay(program: Path, flavour: str, libraries: bool = True) -> Path:
    """Builds ensio-replay for either MPI, with the HDF5 and NetCDF that there are, or without."""
    command = ["sh", SOURCES / "build.sh", f"mpicc.{flavour}"]
    environment = {**os.environ, "PATH": f"{ENSIO_CC.parent}:{os.environ['PATH']}"}
    options = []
    if libraries:
        options = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert "-DENSIO_PARALLEL_HDF5" in options
        assert ("-DENSIO_PNETCDF" in options) == (flavour == "openmpi")  # Debian has it for Open MPI only
    subprocess.run([*command, program, *options], env=environment, check=True)
    return program


def start(
    program: Path,
    flavour: str,
    plan: Path,
    record: Path,
    tasks: int,
    preloaded: bool = False,
    around: Callable[..., list[str]] = lambda *command: list(command),
) -> subprocess.CompletedProcess:
    """Runs a plan, by a command that ``around`` makes of the launcher's.

    A single task starts without a launcher, which takes longer than all that it does.
    """
    preload = [f"LD_PRELOAD={PRELOAD}"] if preloaded else []
    launcher = [f"mpiexec.{flavour}", "-n", tasks] if tasks > 1 else []
    command = [*launcher, "env", f"ENSIO_DIR={record}", *preload, program, plan]
    return subprocess.run(
        [str(word) for word in around(*command)],
        env={**os.environ, **ANY_TASKS, "ENSIO_POINT_TO_POINT": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def content(file: int, where: np.ndarray) -> np.ndarray:
    """The bytes of a file at the places ``where``, by data_pattern.c's rule (SplitMix64), in NumPy."""
    mixed = np.uint64(SEED) + np.uint64(file << 48)
    mixed = mixed + (where // 8 + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed >> (8 * (where % 8)).astype(np.uint64)).astype(np.uint8)


def check_written(path: Path, file: int, rows: Sequence[Row]) -> None:
    """Checks that what rows write to a file, and have not taken away again, is there."""
    own = [row for row in rows if row.file == file]
    written = [row.covered() for row in own if re.search(r"\.(f?write|iput)", row.call) if row.bytes]
    if any(row.call == "posix.unlink" for row in own):
        assert not path.exists()
        return
    if own[0].call.startswith(("hdf5.", "netcdf.")):
        with h5py.File(path) as opened:
            there = opened["data"][:].ravel()
    elif own[0].call.startswith("pnetcdf."):
        size = next(row.bytes for row in own if row.call.endswith("variable_create"))
        there = np.frombuffer(path.read_bytes(), np.uint8)[-(-(-size // 4) * 4) :]  # of a file that is full
    else:
        there = np.frombuffer(path.read_bytes(), np.uint8)
    where = np.concatenate(written)
    assert np.array_equal(there[where], content(file, where))


RECORDED = {
    "mpiio": "MPI_File_{}",
    "posix": "{}",
    "stdio": "{}",
    "hdf5.create": "H5Fcreate",
    "hdf5.open": "H5Fopen",
    "hdf5.close": "H5Fclose",
    "hdf5.dataset_create": "H5Dcreate",
    "hdf5.dataset_open": "H5Dopen",
    "hdf5.dataset_close": "H5Dclose",
    "hdf5.write": "H5Dwrite",
    "hdf5.write_all": "H5Dwrite",
    "hdf5.read": "H5Dread",
    "hdf5.read_all": "H5Dread",
    "hdf5.flush": "H5Fflush",
    "netcdf.create": "nc_create_par",
    "netcdf.open": "nc_open_par",
    "netcdf.write": "nc_put_vara",
    "netcdf.write_all": "nc_put_vara",
    "netcdf.read": "nc_get_vara",
    "netcdf.read_all": "nc_get_vara",
    "netcdf": "nc_{}",
    "pnetcdf.begin_independent": "ncmpi_begin_indep_data",
    "pnetcdf.end_independent": "ncmpi_end_indep_data",
    "pnetcdf.write": "ncmpi_put_vara",
    "pnetcdf.write_all": "ncmpi_put_vara_all",
    "pnetcdf.read": "ncmpi_get_vara",
    "pnetcdf.read_all": "ncmpi_get_vara_all",
    "pnetcdf.iput": "ncmpi_iput_vara",
    "pnetcdf.iget": "ncmpi_iget_vara",
    "pnetcdf": "ncmpi_{}",
}
SETTINGS = ("MPI_File_set_view", "nc_var_par_access")
MOVES = re.compile("read|write|iput|iget")


def recorded(row: Row) -> list[tuple[str, int]]:
    """The recorder's names of a row's calls, and the bytes of a file that they move."""
    return recorded_as(row.call, row.bytes)


def recorded_as(call: str, bytes: int, boxes: int = 1) -> list[tuple[str, int]]:
    """The same of a call, its bytes and its boxes; a variable of several boxes has a dimension more."""
    layer, name = call.removesuffix("_alone").split(".")
    if call == "hdf5.metadata":
        return [("H5Acreate", 0), ("H5Awrite", bytes or 8), ("H5Aclose", 0)]
    if name == "variable_open":  # the libraries have the answer in memory
        return []
    if name == "variable_create":
        prefix = "nc" if layer == "netcdf" else "ncmpi"
        parts = (*["def_dim"] * (3 + (boxes > 1)), "def_var", "enddef")
        return [(f"{prefix}_{part}", 0) for part in parts]
    moves = MOVES.search(name)
    return [(RECORDED.get(call) or RECORDED[layer].format(name), bytes if moves else 0)]


def calls_of(run, layer: str, path: Path, rank: int) -> list[tuple[str, int]]:
    """Name and bytes of a rank's own calls on a file in a layer, without those that prepare a transfer."""
    events = run.select(layer=layer, file=str(path), rank=rank)
    events = events[events.depth == 0]
    names = [events.calls[call].name for call in events.call]
    calls = zip(names, events.moved.clip(0).tolist(), strict=True)
    return [call for call in calls if call[0] not in SETTINGS]
