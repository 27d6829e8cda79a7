"""Runs of ensio-replay on plans that tests write: building it, starting it, and what its files must hold."""

import os
import subprocess
from pathlib import Path

import numpy as np
from places import ENSIO_CC, PRELOAD, ROOT
from test_hdf5 import flags
from test_mpi import MPI

SOURCES = ROOT / "testbed" / "replay"
SEED = 987654321987654321


def build_replay(program: Path, flavour: str, hdf5: bool = True) -> None:
    """Builds ensio-replay as testbed/CMakeLists.txt does, for either MPI, with HDF5 or without."""
    package = f"hdf5-{flavour}"
    options = ["-DENSIO_PARALLEL_HDF5", *flags("cflags", package), *flags("libs", package)] if hdf5 else []
    command = [ENSIO_CC, f"mpicc.{flavour}", "-std=c11", "-I", ROOT / "libtrace" / "include"]
    command += [*sorted(SOURCES.glob("*.c")), "-o", program, *options]
    subprocess.run(command, check=True, env={**os.environ, "ENSIO_CC_QUIET": "1"})


def start(program: Path, flavour: str, plan: Path, record: Path, tasks: int, preloaded: bool = False):
    """Runs a plan. A single task starts without a launcher, which takes longer than all that it does."""
    preload = [f"LD_PRELOAD={PRELOAD}"] if preloaded else []
    launcher = [f"mpiexec.{flavour}", "-n", tasks] if tasks > 1 else []
    command = [*launcher, "env", f"ENSIO_DIR={record}", *preload, program, plan]
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **MPI},
        capture_output=True,
        text=True,
        timeout=300,
    )


def content(file: int, where: np.ndarray) -> np.ndarray:
    """The bytes of a file at the places ``where``, by content.c's rule (SplitMix64), in NumPy."""
    mixed = np.uint64(SEED) + np.uint64(file << 48)
    mixed = mixed + (where // 8 + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed >> (8 * (where % 8)).astype(np.uint64)).astype(np.uint8)
