"""The same pattern on the same model, in virtual time and for real: medians and modes are the same."""

import subprocess

import numpy as np
import pytest

import ensembles

# So slow that what this machine needs for the calls themselves is lost in it, and that tasks which come
# out of a barrier one after the other still meet as a burst at their node, with other tests at work beside
# them.
MODEL = """
tasks_per_node = 4
link_MB_per_s = 2
stream_MB_per_s = 25
cache_MiB = 0
page_cache_MiB = 0
targets = 4
target_MB_per_s = 25
mds_op_ms = 20
readahead_KiB = 0
request_noise = 0.05
call_noise = 0.05
gather_us = 400000
[fault]
node-serialisation = 1
"""
TASKS = 8
REPETITIONS = 6


def durations_s(run, op: str) -> np.ndarray:
    return ensembles.open(run).select(op=op, layer="posix", file="*ior.dat").duration / 1e9


@pytest.fixture(scope="module")
def pattern(tmp_path_factory):
    """What both runs are told."""
    model = tmp_path_factory.mktemp("model") / "node.toml"
    model.write_text(MODEL)
    words = ["ior", "--tasks", TASKS, "--set", "block_bytes=1MiB", "--repetitions", REPETITIONS]
    return [str(word) for word in [*words, "--fs", model, "--seed", "3"]]


@pytest.fixture(scope="module")
def virtual(pattern, tmp_path_factory):
    run = tmp_path_factory.mktemp("virtual") / "run"
    subprocess.run(["ensio", "simulate", *pattern, "-o", run], check=True, capture_output=True)
    return run


def replayed(pattern, folder):
    """A run of real calls."""
    (folder / "data").mkdir(parents=True)
    command = ["ensio", "replay", *pattern, "--directory", folder / "data", "-o", folder / "run"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    # Each task opens, writes, syncs, closes, opens, reads and closes one file; no other process has a call
    # under the model.
    assert f"{TASKS * (2 * REPETITIONS + 5)} calls were delayed by the model" in done.stderr
    return folder / "run"


def disagreement(virtual: np.ndarray, real: np.ndarray) -> str:
    """What is not the same within a tenth; empty: all is."""
    assert len(virtual) == len(real) == TASKS * REPETITIONS
    medians_s = np.median(virtual), np.median(real)
    if medians_s[1] != pytest.approx(medians_s[0], rel=0.1):
        return f"medians {medians_s}"
    modes_s = np.array([mode.t_s for mode in ensembles.Ensemble(virtual).modes().modes])
    assert len(modes_s) >= 2
    far = np.abs(modes_s[:, None] / real - 1).min(axis=1)
    if far.max() >= 0.1:
        return f"modes {modes_s[far >= 0.1]} without real calls"
    # Where a task of the real run is a little late for its node's burst, it is in none of them.
    near = (np.abs(real[:, None] / modes_s - 1).min(axis=1) < 0.1).mean()
    return "" if near >= 0.8 else f"{near:.2f} of the calls are in the modes {modes_s}"


def test_medians_and_modes_agree(pattern, virtual, tmp_path):
    told = []
    # Where other work keeps the processors from the tasks, these are late for their bursts: another try.
    for number in range(3):
        real = replayed(pattern, tmp_path / str(number))
        told += [
            f"try {number}, {op}: {found}"
            for op in ("write", "read")
            if (found := disagreement(durations_s(virtual, op), durations_s(real, op)))
        ]
        if not any(line.startswith(f"try {number},") for line in told):
            return
    pytest.fail("\n".join(told))
