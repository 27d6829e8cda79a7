"""``strided-readahead`` is silent where something else makes reads slow, or nothing does."""

from __future__ import annotations

import numpy as np
import pytest
from matrices import MIB, FileSystem, Matrices, Program, run_matrices

from ensembles.diagnosis.rules.strided_readahead.checks import Verdict, verdict
from ensembles.diagnosis.rules.strided_readahead.profile import StridedRuns, judgeable
from ensembles.model.events import Call, Events
from ensembles.structure.strides.summary import StridedReads

TASKS = 16


def judged(events: Events) -> Verdict:
    found = StridedReads()
    found.add(events)
    rows = judgeable(found.rows_nearest_to_disk)
    mixed = rows["interleaved"]
    return verdict(StridedRuns.of_rows(rows[mixed]), StridedRuns.of_rows(rows[~mixed]))


def judged_run(shape: Matrices, system: FileSystem, tasks: int = TASKS, seed: int = 0) -> Verdict:
    return judged(run_matrices(shape, tasks, system, seed).events)


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


@pytest.mark.parametrize("onset", [2, 3, 5, 6])
def test_it_is_silent_where_slow_reads_begin_elsewhere(onset):
    program = Program(TASKS, FileSystem(), seed=1)
    stride = 301 * MIB
    place = np.arange(TASKS) * 10 * stride
    for k in range(10):
        program.call("read", place + k * stride, 300 * MIB, factor=1 + 2 * max(k + 2 - onset, 0))
        program.call("write", place + k * stride, 300 * MIB)
    assert not judged(program.events).holds


def random_healthy(seed: int) -> tuple[Matrices, int, FileSystem]:
    """A program and a file system without the fault, but with all else that slows reads."""
    rng = np.random.default_rng([seed, 11])
    shape = Matrices(
        count=int(rng.choice([5, 6, 8, 8, 12, 16, 32])),
        size_bytes=int(2 ** rng.uniform(20, 29)),
        gap_bytes=int(rng.choice([4096, 65536, MIB])),
        own_file=bool(rng.random() < 0.3),
        head_reads=int(rng.choice([0, 2])),
        phases=str(rng.choice(["wmr", "wm", "m", "wmmr", "mr", "wmrmr"])),
        barriers=bool(rng.random() < 0.7),
    )
    usual_s = shape.size_bytes / MIB * 0.03 * shape.count
    system = FileSystem(
        noise=float(rng.choice([0.05, 0.15, 0.4, 0.8])),
        shared_noise=float(rng.choice([0.02, 0.1, 0.3, 0.6])),
        node_noise=float(rng.choice([0, 0.1, 0.5])),
        heavy=float(rng.choice([0, 0, 0.02, 0.1])),
        pressure=float(rng.choice([1, 1, 1.5, 3, 6])),
        drift_per_s=float(rng.choice([0, 0, 0, 0.3, 1.0, 2.0])) / (usual_s * len(shape.phases)),
        cliff_bytes=float(rng.choice([np.inf, np.inf, rng.uniform(0, 2 * shape.count) * shape.size_bytes])),
        cliff_reads=float(rng.choice([1, 2, 5])),
    )
    for _ in range(int(rng.choice([0, 0, 1, 2, 4]))):
        begin = rng.uniform(0, usual_s * len(shape.phases))
        system.bursts.append((begin, begin + usual_s * rng.exponential(0.6), float(rng.choice([1.5, 3, 10]))))
    return shape, int(2 ** rng.uniform(1, 7)), system


def test_of_random_healthy_runs_at_most_one_in_a_hundred_alarms():
    runs = 150
    alarms = [seed for seed in range(runs) if judged_run(*_in_order(random_healthy(seed)), seed=seed).holds]
    assert len(alarms) <= 2, alarms


def _in_order(drawn):
    shape, tasks, system = drawn
    return shape, system, tasks


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
