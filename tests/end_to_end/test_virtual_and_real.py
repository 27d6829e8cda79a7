"""The same pattern on the same model, in virtual time and for real: medians and modes are the same."""

import subprocess

import numpy as np
import pytest

import ensembles

# Slow enough that what this machine needs for the calls themselves is lost in it, and that tasks which come
# out of a barrier one after the other still meet as a burst at their node.
MODEL = """
tasks_per_node = 4
link_MB_per_s = 8
stream_MB_per_s = 100
cache_MiB = 0
page_cache_MiB = 0
targets = 4
target_MB_per_s = 100
mds_op_ms = 5
readahead_KiB = 0
request_noise = 0.05
call_noise = 0.05
gather_us = 100000
[fault]
node-serialisation = 1
"""
TASKS = 8
REPETITIONS = 6


def durations_s(run, op: str) -> np.ndarray:
    return ensembles.open(run).select(op=op, layer="posix", file="*ior.dat").duration / 1e9


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run in virtual time, and the real one."""
    folder = tmp_path_factory.mktemp("runs")
    model, data = folder / "node.toml", folder / "data"
    model.write_text(MODEL)
    data.mkdir()
    pattern = ["ior", "--tasks", TASKS, "--block-size", "1MiB", "--repetitions", REPETITIONS]
    pattern += ["--fs", model, "--seed", "3"]
    virtual = ["ensio", "simulate", *pattern, "-o", folder / "virtual"]
    subprocess.run([str(word) for word in virtual], check=True, capture_output=True)
    real = ["ensio", "replay", *pattern, "--directory", data, "-o", folder / "real"]
    done = subprocess.run([str(word) for word in real], check=True, capture_output=True, text=True)
    # Each task opens, writes, syncs, reads and closes one file; nobody else has a call under the model.
    assert f"{TASKS * (2 * REPETITIONS + 3)} calls were held back as the model says" in done.stderr
    return folder / "virtual", folder / "real"


@pytest.mark.parametrize("op", ["write", "read"])
def test_medians_and_modes_agree(runs, op):
    virtual, real = (durations_s(run, op) for run in runs)
    assert len(virtual) == len(real) == TASKS * REPETITIONS
    assert np.median(real) == pytest.approx(np.median(virtual), rel=0.1)
    modes = np.array([mode.t_s for mode in ensembles.Ensemble(virtual).modes().modes])
    assert len(modes) >= 2
    # Where a task of the real run is a little late for its node's burst, it is in none of them.
    near = np.abs(real[:, None] / modes - 1).min(axis=1) < 0.1
    assert near.mean() >= 0.8
    assert np.abs(modes[:, None] / real - 1).min(axis=1).max() < 0.1
