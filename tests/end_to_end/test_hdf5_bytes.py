"""Bytes that HDF5 keeps and moves later count once, in the call of the program that wrote them."""

import json
import sys

import pytest
from commands_here import executed
from places import PATIENCE_S
from test_hdf5 import flags, shared, static

import ensembles

MIB = 1 << 20
METADATA = 16384
"""Most bytes of headers that these programs write outside of the calls of the layer."""

CHUNKS = """
import h5py, numpy as np
with h5py.File("chunks.h5", "w", rdcc_nbytes=64 << 20) as file:
    for number in range(6):
        rows = file.create_dataset(f"rows{number}", (8, 1 << 17), "f8", chunks=(1, 1 << 17))
        for row in range(8):
            rows[row] = np.full(1 << 17, number + row)
        if number % 2:
            file.flush()
"""


def answer(recorder, *command: str) -> dict:
    done = executed(*command, recorder.run, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def written(recorder) -> dict[str, int]:
    """The bytes that a run wrote, by command."""
    rates = answer(recorder, "rate")["rates"]
    return {
        "info": answer(recorder, "info")["bytes_written"],
        "rate": next(round(rate["bytes"]) for rate in rates if rate["op"] == "write"),
        "phases": sum(phase["bytes_written"] for phase in answer(recorder, "phases")["phases"]),
    }


def assert_written(recorder, expected: int):
    found = written(recorder)
    assert len(set(found.values())) == 1, found
    assert expected <= found["info"] <= expected + METADATA
    below = ensembles.open(recorder.run).select(call="pwrite", file="*/chunks.h5")
    assert below.moved.sum() >= expected  # so they would count twice


@pytest.mark.parametrize("mode", ["trace", "profile"])
@pytest.mark.parametrize("by", ["H5Dclose", "H5Fflush", "H5Idec_ref", "H5close"])
def test_chunks_that_a_later_call_moves(recorder, tmp_path, by, mode):
    # The linker does not see into a shared library.
    library = static if recorder.way == "relinked" else shared
    program = recorder.build("hdf5_chunks", *flags("cflags"), *library())
    recorder.execute(
        program, by, cwd=tmp_path, check=True, timeout=PATIENCE_S, environment={"ENSIO_MODE": mode}
    )
    if mode == "trace":
        assert_written(recorder, 8 * MIB)
    else:
        told = answer(recorder, "info")["bytes_written"]
        assert 8 * MIB <= told <= 8 * MIB + METADATA


def test_chunks_of_h5py(preload, tmp_path):
    preload.execute(sys.executable, "-c", CHUNKS, cwd=tmp_path, check=True, timeout=PATIENCE_S)
    assert_written(preload, 48 * MIB)
