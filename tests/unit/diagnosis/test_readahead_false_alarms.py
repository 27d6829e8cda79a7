"""``strided-readahead`` is silent where something else makes reads slow, or nothing does."""

from __future__ import annotations

import numpy as np
import pytest
from judging import TASKS, judged, judged_run, random_healthy
from matrices import MIB, FileSystem, Matrices, Program, run_matrices

from ensembles.model.events import Call, Events


def test_the_same_program_with_the_fault_is_no_false_alarm():
    assert judged_run(Matrices(), FileSystem(fault=1.0)).holds


HEALTHY = {
    "healthy": FileSystem(),
    "all reads are slow": FileSystem(read_s_per_mib=3.0),
    "reads with writes between are slower from the first on": FileSystem(pressure=5.0),
    "slower and slower with time": FileSystem(drift_per_s=0.004),
    "much noise": FileSystem(noise=0.8, shared_noise=0.3, heavy=0.05),
    "a cache that is full at some time": FileSystem(cliff_bytes=11.5 * 300 * MIB, cliff_reads=4.0),
    "another job's burst": FileSystem(bursts=[(100.0, 200.0, 5.0)]),
    "one task is slow": FileSystem(node_noise=0.8),
}


@pytest.mark.parametrize("count", [5, 8, 32])
@pytest.mark.parametrize("name", HEALTHY)
def test_it_is_silent(name, count):
    for phases in ("wmr", "wm", "m"):
        assert not judged_run(Matrices(count=count, phases=phases), HEALTHY[name]).holds


def test_it_is_silent_where_reads_have_no_holes_between_them():
    program = run_matrices(Matrices(gap_bytes=0, layer="posix"), TASKS, FileSystem(drift_per_s=0.004))
    assert judged(program.events).groups == ()


def test_it_is_silent_where_reads_without_writes_between_get_slow_too():
    """A read-ahead that fails always is another fault."""
    program = Program(TASKS, FileSystem(), seed=1)
    stride = 301 * MIB
    place = np.arange(TASKS) * 8 * stride
    for with_writes in (True, False):
        for k in range(8):
            program.call("read", place + k * stride, 300 * MIB, factor=1 + max(k - 2, 0))
            if with_writes:
                program.call("write", place + k * stride, 300 * MIB)
        program.barrier()
    found = judged(program.events)
    assert [check.name for check in found.checks if check.holds is False] == ["only-with-writes-between"]


@pytest.mark.parametrize("onset", [2, 3, 6, 7])
def test_it_is_silent_where_slow_reads_begin_elsewhere(onset):
    program = Program(TASKS, FileSystem(), seed=1)
    stride = 301 * MIB
    place = np.arange(TASKS) * 10 * stride
    for k in range(10):
        program.call("read", place + k * stride, 300 * MIB, factor=1 + 2 * max(k + 2 - onset, 0))
        program.call("write", place + k * stride, 300 * MIB)
    assert not judged(program.events).holds


@pytest.mark.parametrize("onset", [4, 5])
def test_slow_reads_that_begin_with_the_fourth_or_fifth_are_found(onset):
    program = Program(TASKS, FileSystem(), seed=1)
    stride = 301 * MIB
    place = np.arange(TASKS) * 10 * stride
    for k in range(10):
        program.call("read", place + k * stride, 300 * MIB, factor=1 + 2 * max(k + 2 - onset, 0))
        program.call("write", place + k * stride, 300 * MIB)
    found = judged(program.events)
    assert found.holds
    assert found.numbers["first_slow_read"] == onset


def test_a_weak_fault_may_show_one_read_later_in_most_tasks():
    """The fifth read is slow where memory fills first, in three of 16 tasks; in the others the sixth is."""
    program = Program(TASKS, FileSystem(), seed=1)
    place = np.arange(TASKS) * 10 * 301 * MIB
    early = np.arange(TASKS) < 3
    for k in range(10):
        slow = 1 + np.maximum(0.5 * (k - 4), 0) + 0.8 * early * (k >= 4)
        program.call("read", place + k * 301 * MIB, 300 * MIB, factor=slow)
        program.call("write", place + k * 301 * MIB, 300 * MIB)
    found = judged(program.events)
    assert found.holds
    assert found.numbers["first_slow_read"] == 5
    assert "the slowest tenth of the tasks" in found.checks[0].sentence


@pytest.mark.long
def test_random_healthy_runs_hardly_ever_alarm():
    """Gross errors only: ./dev calibrate readahead counts the alarms of many more."""
    alarms = [seed for seed in range(60) if judged_run(*random_healthy(seed), seed=seed).holds]
    assert len(alarms) <= 1, alarms


def op_of(name: str) -> str:
    """The operation of a function's name in a table."""
    function = name.split(":")[-1]
    return function.lstrip("fp") if function in ("read", "write", "fread", "pread") else "meta"


@pytest.mark.parametrize(
    "name",
    [
        "vpic_hdf5_summit_gpfs_192",
        "cm1_48_dftracer",
        "dlio_hdf5_8_dftracer",
        "cm1_recorder",
        "local_bufwr256k_6runs",
    ],
)
def test_it_is_silent_on_real_tables(name):
    from real_tables import real_table

    table = real_table(name)
    ops = [str(op) for op in table["op_names"]]
    layers = [str(layer) for layer in table.get("layer_names", ["posix"])]
    calls = [Call(op, layer.split("/")[0].lower(), op_of(op)) for op in ops for layer in layers]
    layer = table.get("layer", np.zeros(len(table["op"]), np.int64))
    runs = table.get("run", np.zeros(len(table["op"]), np.int64))
    n = len(table["op"])
    zero = np.zeros(n, np.int64)
    start = np.rint((table["start"] - table["start"].min()) * 1e9).astype(np.int64)
    length = np.maximum(table["length"], 0)
    columns = {
        "rank": table["rank"],
        "thread": zero,
        "call": table["op"].astype(np.int64) * len(layers) + layer,
        "depth": zero,
        "carried": zero,
        "file": table["file"].astype(np.int64) + 1 if "file" in table else zero + 1,
        "offset": table["offset"],
        "requested": length,
        "moved": length,
        "error": zero,
        "start": start,
        "duration": np.maximum(np.rint((table["end"] - table["start"]) * 1e9), 0).astype(np.int64),
    }
    files = [""] + [f"/{number}" for number in range(int(columns["file"].max()) + 1)]
    for run in np.unique(runs):
        mine = runs == run
        events = Events({key: values[mine] for key, values in columns.items()}, calls, files)
        assert not judged(events).holds
