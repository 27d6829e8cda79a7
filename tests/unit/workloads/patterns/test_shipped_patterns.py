"""The shipped patterns: what the publications say of these workloads, counted apart from the expansion."""

import functools
import json
import re
from collections import Counter

import h5py
import numpy as np
import pytest
from project import ROOT

from ensembles.workloads.patterns import expand, read_pattern

PATTERNS = ROOT / "testbed" / "patterns"
NAMES = sorted(path.stem for path in PATTERNS.glob("*.toml"))
KIB, MIB = 1 << 10, 1 << 20

# At a size at which every byte can be looked at: parameters, and the files that are filled without a gap.
WHOLE = {
    "ior": ({"block_bytes": 64}, ["ior.dat"]),
    "hacc-own-files": (
        {"tasks": 3, "particles": 7, "header_bytes": 100},
        ["hacc-0.dat", "hacc-1.dat", "hacc-2.dat"],
    ),
    "hacc-shared": ({"tasks": 3, "particles": 7, "header_bytes": 100}, ["hacc-shared.dat"]),
    "ior-sdumont": (
        {"shrink": 3000},
        ["ior-1024.dat", "ior-1312.dat", "ior-58864.dat", "ior-65536.dat"],
    ),
    "ior-sdumont-hdf5": (
        {"shrink": 3000},
        ["ior-1024.h5", "ior-1312.h5", "ior-58864.h5", "ior-65536.h5"],
    ),
    "olam": (
        {"shrink": 10**5, "outputs": 2},
        ["olam-maps.in", "olam-climate.in", "olam-catalogue.in", "olam-history-0.h5", "olam-history-1.h5"],
    ),
    "btio": ({"tasks": 10, "grid": 13, "shrink": 2}, ["btio.dat"]),
    "btio-simple": ({"tasks": 10, "grid": 13, "shrink": 2}, ["btio.dat"]),
    "hacc": ({"tasks": 3, "particles": 7, "header_bytes": 100}, ["hacc-soa.dat", "hacc-aos.dat"]),
    "benchio": (
        {"tasks": 12, "block_x": 3, "block_y": 2, "block_z": 4, "repetitions": 1},
        ["benchio-mpiio.dat", "benchio-hdf5.h5"],
    ),
    "benchio-serial": (
        {"tasks": 3, "block_x": 3, "block_y": 2, "block_z": 4, "repetitions": 1, "buffer_bytes": 50},
        ["benchio-serial.dat"],
    ),
    "benchio-own-files": (
        {"tasks": 2, "block_x": 3, "block_y": 2, "block_z": 4, "repetitions": 1, "buffer_bytes": 50},
        [f"benchio-{kind}-{rank}.dat" for kind in ("unstriped", "striped", "defstriped") for rank in (0, 1)],
    ),
    "benchio-netcdf": (
        {"tasks": 12, "block_x": 3, "block_y": 2, "block_z": 4, "repetitions": 1},
        ["benchio-netcdf.nc"],
    ),
    "s3dio": (
        {"tasks": 12, "block_x": 2, "block_y": 3, "block_z": 1, "fields": 3, "checkpoints": 2},
        ["s3dio-0.nc", "s3dio-1.nc"],
    ),
    "twophase": ({"tasks": 7}, ["twophase.dat"]),
}
# As in runs of the kernel of GCRM: head of the file, six datasets with a node of their index, last group.
GCRM_METADATA = 800 + 6 * (3368 + 3136) + 328
GCRM_HEAD = 96
# Those that leave gaps: how many bytes of the file are written.
GAPS = {
    "madbench": ({"tasks": 3, "matrix_bytes": 1000, "alignment_bytes": 64}, 3 * 8 * 1000),
    "gcrm": ({"tasks": 3, "record_bytes": 1000}, 3 * 21 * 1000 + GCRM_METADATA),
    "gcrm-writers": ({"record_bytes": 1000}, 8 * 21 * 1000 + GCRM_METADATA),
    "gcrm-aligned": ({"record_bytes": 1000, "alignment_bytes": 512}, 8 * 21 * 1000 + GCRM_METADATA),
    "gcrm-aggregated": (
        {"record_bytes": 1000, "alignment_bytes": 512, "aggregate_bytes": 4096},
        8 * 21 * 1000 + 4096,
    ),
}


def plan_of(name, overrides=None, **how):
    return expand(read_pattern(PATTERNS / f"{name}.toml"), overrides, **how)


@functools.cache
def published(name):
    """The plan of a pattern at its published size."""
    return plan_of(name, paper=True)


def calls_named(plan, *names):
    """Rows of these calls, with the task in front; all boxes of a call."""
    numbers = [plan.calls.index(name) for name in names]
    parts = []
    for block in plan.blocks():
        first = np.maximum.accumulate(np.where(block.rows[:, 1] < 0, 0, np.arange(len(block.rows))))
        own = np.isin(block.rows[first, 1], numbers)
        parts.append(np.column_stack([block.rank[own], block.rows[own]]))
    return np.concatenate(parts)


def times_written(plan, phase=None):
    """How often each byte of each file is written, counted byte by byte."""
    written = {}
    names = [name for name in plan.calls if re.search(r"\.(p?f?write|iput)", name)]
    for row in calls_named(plan, *names).tolist():
        _, step, _, file, offset, size, pieces, stride, planes, plane_stride = row
        if phase and not plan.steps[step].phase.startswith(phase):
            continue
        counts = written.setdefault(plan.files[file], Counter())
        length = size // (pieces * planes)
        for plane in range(planes):
            for piece in range(pieces):
                start = offset + plane * plane_stride + piece * stride
                counts.update(range(start, start + length))
    return written


def test_every_pattern_is_among_the_tested():
    assert {*WHOLE, *GAPS, "calibrate-fs"} == set(NAMES)  # which writes each place again and again


@pytest.mark.parametrize("name", WHOLE)
def test_every_byte_of_the_files_is_written_exactly_once(name):
    overrides, files = WHOLE[name]
    plan = plan_of(name, overrides)
    written = times_written(plan)
    assert sorted(written) == sorted(files)
    for counts in written.values():
        assert set(counts.values()) == {1}
        assert sorted(counts) == list(range(len(counts)))
    assert plan.needed_bytes() == sum(map(len, written.values()))


@pytest.mark.parametrize("name", GAPS)
def test_patterns_with_gaps_write_no_more_than_their_records(name):
    overrides, expected = GAPS[name]
    plan = plan_of(name, overrides)
    first = times_written(plan, "generate" if name == "madbench" else None)
    [counts] = first.values()
    if "aggregate_bytes" not in overrides and name.startswith("gcrm"):  # the head is written anew
        assert {counts[byte] for byte in range(GCRM_HEAD)} == {3}
        counts.update(dict.fromkeys(range(GCRM_HEAD), -2))
    assert set(counts.values()) == {1}
    assert len(counts) == expected


@pytest.mark.parametrize("name", NAMES)
def test_scale_keeps_tasks_and_steps_and_makes_less(name):
    pattern = read_pattern(PATTERNS / f"{name}.toml")
    if "shrink" not in pattern.parameters:
        assert name in ("twophase", "calibrate-fs")  # sizes of requests are what they are about
        return
    full = expand(pattern, {"shrink": 1})
    small = expand(pattern, {"shrink": 64})
    assert small.steps == full.steps
    assert small.tasks == full.tasks
    assert small.calls == full.calls
    assert small.needed_bytes() < full.needed_bytes() / 5


@pytest.mark.parametrize("name", NAMES)
def test_laptops_have_room_for_the_defaults(name):
    plan = plan_of(name)
    assert plan.tasks <= 8
    assert plan.needed_bytes() < 1 << 30


@pytest.mark.parametrize(
    ("name", "call"), [("ior-sdumont", "mpiio.write_at_all"), ("ior-sdumont-hdf5", "hdf5.write_all")]
)
def test_ior_sdumont_has_the_segments_of_table_2(name, call):
    paper = plan_of(name, {"only": 65536}, paper=True)
    assert (paper.tasks, paper.tasks_per_node) == (240, 24)
    plan = plan_of(name, {"tasks": 24}, paper=True)  # a tenth of the tasks
    rows = calls_named(plan, call)
    for size, segment_bytes, segments in (
        (1024, 245760, 6554),
        (1312, 314880, 5116),
        (58864, 14127360, 116),
        (65536, 15728640, 104),
    ):
        own = rows[rows[:, 5] == size]
        assert len(own) == 24 * segments
        assert own[:, 4].max() + size == segments * segment_bytes // 10
        of_task = own[own[:, 0] == 17]
        np.testing.assert_array_equal(np.diff(of_task[:, 4]), segment_bytes // 10)


def test_madbench_is_the_workload_of_figure_4():
    """8 x write, 8 x read and write that begin with two reads and end with two writes, 8 x read."""
    plan = plan_of("madbench", paper=True)
    assert (plan.tasks, plan.tasks_per_node) == (256, 4)
    rows = calls_named(plan, "posix.read", "posix.write")
    own = rows[rows[:, 0] == 100]
    made = "".join(plan.calls[call].split(".")[1][0] for call in own[:, 2])
    assert made == "w" * 8 + "rr" + "wr" * 6 + "ww" + "r" * 8
    assert set(rows[:, 5].tolist()) == {300_000_000}
    offsets = own[:, 4].reshape(-1)
    part = 287 * MIB  # 300 MB up to the next MiB: the gap is below 1 MiB
    assert 0 < part - 300_000_000 < MIB
    np.testing.assert_array_equal(offsets[:8], (100 * 8 + np.arange(8)) * part)
    np.testing.assert_array_equal(offsets[-8:], offsets[:8])
    reads = np.array([step == "r" for step in made[8:24]])
    np.testing.assert_array_equal(offsets[8:24][reads], offsets[:8])
    np.testing.assert_array_equal(offsets[8:24][~reads], offsets[:8])


@pytest.mark.parametrize("layer", ["stdio", "mpiio"])
def test_madbench_goes_through_other_layers_with_the_same_calls(layer):
    posix = plan_of("madbench")
    other = expand(read_pattern(PATTERNS / "madbench.toml", layer))
    assert {name.partition(".")[0] for name in other.calls} == {layer, "mpi"}
    for column in ("rank", "step", "call", "file", "offset", "bytes"):
        np.testing.assert_array_equal(other.column(column), posix.column(column))


@pytest.mark.parametrize(
    ("name", "writers", "alignment", "metadata"),
    [
        ("gcrm", 10240, 1, 601 + 3352 - 2),  # as in two files of the kernel, of which one is closed
        ("gcrm-writers", 80, 1, 601 + 3352 - 2),
        ("gcrm-aligned", 80, MIB, 601 + 3352 - 2),
        ("gcrm-aggregated", 80, MIB, 1),
    ],
)
def test_gcrm_is_the_ladder_of_figure_6(name, writers, alignment, metadata):
    plan = published(name)
    assert plan.tasks == writers
    rows = calls_named(plan, "posix.write")
    records = rows[rows[:, 5] == 1_600_000]
    assert len(records) == 10240 * (3 * 1 + 3 * 6)
    assert set(Counter(records[:, 0].tolist()).values()) == {10240 * 21 // writers}
    assert len(np.unique(records[:, 4])) == len(records)
    assert not (records[:, 4] % alignment).any()
    if alignment == 1:
        assert (records[:, 4] % MIB != 0).mean() > 0.99
    others = rows[rows[:, 5] != 1_600_000]
    assert len(others) == metadata
    assert not others[:, 0].any()
    assert (others[:, 5] < 3 * KIB).all() if metadata > 1 else others[0, 5] == MIB
    if metadata > 1:  # of the first half at its end; of the second half before its steps, and at its end
        of_phase = Counter(plan.steps[step].phase for step in others[:, 1])
        names = ("metadata-of-one-record", "six-records", "metadata-of-six-records")
        assert [of_phase[phase] for phase in names] == [598, 639 + 2 * 1108, 495]
        phases = [step.phase for step in plan.steps]
        assert phases.index("metadata-of-one-record") == phases.index("six-records") - 1
    per_phase = Counter(plan.steps[step] for step in records[:, 1])
    assert [per_phase[step] for step in plan.steps if step in per_phase] == [10240] * 3 + [6 * 10240] * 3


GCRM_NODE = 3136  # of the index of its datasets: the largest piece of metadata


def gcrm_counts(name):
    return json.loads((PATTERNS / "fingerprints" / "counts" / f"{name}.json").read_text())


def metadata_calls(plan, call):
    rows = calls_named(plan, call)
    return rows[rows[:, 5] <= GCRM_NODE]


def test_gcrm_makes_as_many_writes_of_metadata_as_its_kernel():
    counted = gcrm_counts("gcrm-records-1.8.3")
    with_later_hdf5 = gcrm_counts("gcrm-metadata")
    plan = published("gcrm")
    writes = metadata_calls(plan, "posix.write")
    of_phase = Counter(plan.steps[step].phase for step in writes[:, 1])
    # The first half has datasets of one chunk of each task. The kernel closes its file, with two writes.
    assert counted["chunks"] == with_later_hdf5["chunks"] == plan.tasks
    first = of_phase["open"] + of_phase["metadata-of-one-record"]
    assert first == counted["whole"]["calls"]["write"] - of_phase["close"]
    assert abs(first - with_later_hdf5["whole"]["calls"]["MPI_File_write_at"]) <= of_phase["close"]
    # The second half has datasets of six, whose index HDF5 writes before the records and at the end.
    counted = gcrm_counts("gcrm-index-1.8.3")
    assert counted["chunks"] == 6 * plan.tasks
    of_step = Counter(plan.steps[step] for step in writes[:, 1] if plan.steps[step].phase == "six-records")
    assert [of_step[step] for step in plan.steps if step in of_step] == counted["writes_before_records"]
    assert of_phase["metadata-of-six-records"] + of_phase["close"] == counted["writes_at_the_end"]
    assert len(writes) == first + counted["whole"]["calls"]["write"]


def leaves_of_hdf5(path, chunks, chunk_bytes):
    """Addresses of the leaves of the index of a dataset whose chunks HDF5 allocates when it is created."""
    chosen = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    chosen.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V18)
    file = h5py.h5f.create(str(path).encode(), fapl=chosen)
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((chunk_bytes,))
    made.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    made.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple((chunks * chunk_bytes,))
    h5py.h5d.create(file, b"records", h5py.h5t.NATIVE_UINT8, space, made)
    file.close()
    content = path.read_bytes()
    nodes = [found.start() for found in re.finditer(b"TREE\\x01", content)]  # of an index of chunks
    return np.array([node for node in nodes if content[node + 5] == 0])


@pytest.mark.parametrize(("phase", "datasets"), [("one-record", 1), ("six-records", 6)])
def test_leaves_of_the_index_of_gcrm_lie_where_hdf5_puts_them(tmp_path, phase, datasets):
    chunk_bytes = 10_000  # more than the nodes between two leaves
    plan = plan_of("gcrm", {"tasks": 2048, "metadata_reads": 0, "step_writes": 0, "first_writes": 0})
    chunks = datasets * plan.tasks
    by_hdf5 = np.diff(leaves_of_hdf5(tmp_path / "records.h5", chunks, chunk_bytes)) // chunk_bytes
    writes = metadata_calls(plan, "posix.write")
    of_phase = [plan.steps[step].phase == f"metadata-of-{phase}" for step in writes[:, 1]]
    nodes = np.sort(writes[of_phase & (writes[:, 5] == GCRM_NODE), 4])
    between = np.diff(nodes[: len(nodes) // 3]) // plan.parameters["record_bytes"]  # of three datasets
    # The first node becomes the root of the index: its leaf is copied behind 65 records, like the second.
    assert (by_hdf5[0], between[0]) == (0, 65)
    np.testing.assert_array_equal(between[between > 0][1:], by_hdf5[1:])
    # With aligned records, the metadata have separate blocks.
    aligned = metadata_calls(published("gcrm-aligned"), "posix.write")
    assert len(np.unique(aligned[:, 4] // MIB)) * 200 < len(aligned)


def test_gcrm_reads_the_index_as_its_kernel():
    counted = gcrm_counts("gcrm-index-1.8.3")
    tasks = counted["tasks"]
    kernel = plan_of("gcrm", {"tasks": tasks, "share": counted["chunks"] // 6 // tasks}, paper=True)
    reads = Counter(metadata_calls(kernel, "posix.read")[:, 0].tolist())
    # Task 0, which writes the index, finds less of it in its cache.
    expected = [counted["reads_of_tasks"][rank] for rank in (1, 2, 3)]
    assert [reads[rank] for rank in (1, 2, 3)] == pytest.approx(expected, rel=0.05)
    assert reads[0] == pytest.approx(counted["reads_of_tasks"][0], rel=0.3)
    # An index that stays in the cache is not read, and neither are metadata that are kept until the end.
    for name, paper in (("gcrm", False), ("gcrm-aggregated", True)):
        plan = plan_of(name, paper=paper)
        assert "posix.read" not in {plan.calls[call] for call in plan.column("call")}


TABLE_1 = {
    0: {1308: 94521, 1312: 55713, 1316: 44394, 59040: 43904},
    1: {1308: 110397, 1312: 94521, 1316: 63798, 58860: 59584},
}
"""Collective writes of OLAM by size, with BullxMPI and with OpenMPI 1.10."""


@pytest.mark.parametrize("openmpi", TABLE_1)
def test_olam_makes_the_requests_of_table_1(openmpi):
    few = {"outputs": 1, "reads_8192": 1, "reads_8190": 1, "openmpi": openmpi}
    plan = plan_of("olam", few, paper=True)
    assert (plan.tasks, plan.tasks_per_node) == (240, 24)
    writes = Counter(calls_named(plan, "hdf5.write_all")[:, 5].tolist())
    table = TABLE_1[openmpi]
    assert {size: 49 * writes[size] for size in table} == table
    # The table has the four most frequent sizes: no other is as frequent.
    assert max(count for size, count in writes.items() if size not in table) < min(table.values()) / 49
    assert plan.needed_bytes() == pytest.approx(1.1e9, rel=0.02)
    catalogue = calls_named(plan, "posix.read")
    assert (catalogue[:, 5] == 512).sum() == 126186
    one_task = plan_of("olam", {"tasks": 1}, paper=True)  # every task reads the same of the larger files
    reads = Counter(calls_named(one_task, "posix.read")[:, 5].tolist())
    assert {size: 240 * reads[size] for size in (8192, 8190)} == {8192: 8585280, 8190: 6785760}
    assert one_task.steps[-1].repetition == 48


def test_btio_class_d_moves_the_requests_of_the_paper():
    plan = plan_of("btio", paper=True)
    rows = calls_named(plan, "mpiio.write_at_all")
    assert plan.tasks == 144
    calls = rows[rows[:, 2] >= 0]
    assert len(calls) == 144 * 50
    assert len(rows) == 12 * len(calls)
    bytes_of_calls = np.add.reduceat(rows[:, 5], np.flatnonzero(rows[:, 2] >= 0))
    assert set(bytes_of_calls.tolist()) == {18_865_920}
    assert plan.needed_bytes() == 408**3 * 40 * 50
    # 12 cubes of 34 x 34 rows of 34 points.
    assert np.unique(rows[:, [5, 6, 8]], axis=0).tolist() == [[34**3 * 40, 34, 34]]


def test_cells_of_btio_lie_on_a_diagonal():
    """No two cells of a task are in the same row, column or layer of cells: what the sweeps of BT need."""
    plan = plan_of("btio", {"tasks": 16, "grid": 18, "shrink": 1, "writes": 1})
    rows = calls_named(plan, "mpiio.write_at_all")
    low = np.cumsum([0, 5, 5, 4])  # 18 points are cells of 5, 5, 4 and 4
    for rank in range(16):
        offsets = rows[rows[:, 0] == rank, 4] // 40
        for points in (offsets % 18, offsets // 18 % 18, offsets // 18**2):
            assert sorted(points.tolist()) == low.tolist()


def test_hacc_has_nine_variables_of_38_bytes_together():
    plan = plan_of("hacc", {"tasks": 32}, paper=True)
    [soa_header, aos_header] = calls_named(plan, "mpiio.write_at").tolist()
    assert (soa_header[0], soa_header[4], soa_header[5]) == (aos_header[0], 0, 24 * MIB) == (0, 0, 24 * MIB)
    for phase in ("soa-write", "aos-write"):
        step = next(number for number, step in enumerate(plan.steps) if step.phase == phase)
        rows = calls_named(plan, "mpiio.write_at_all")
        own = rows[(rows[:, 1] == step) & (rows[:, 0] == 5)]
        assert (own[:, 5] // 25000).tolist() == [4, 4, 4, 4, 4, 4, 4, 8, 2]
        before = np.cumsum(own[:, 5]) - own[:, 5]
        expected = 5 * 38 * 25000 + before if phase == "aos-write" else 32 * before + 5 * own[:, 5]
        np.testing.assert_array_equal(own[:, 4], 24 * MIB + expected)


def test_benchio_blocks_are_those_of_an_array():
    """What task r writes is its block of the array, looked up in an array of the same shape."""
    x, y, z = 3, 2, 4
    plan = plan_of("benchio", {"tasks": 12, "block_x": x, "block_y": y, "block_z": z, "repetitions": 1})
    across = (2, 2, 3)  # 12 = 3 x 2 x 2, the most along the slowest axis
    owner = np.empty((across[2] * z, across[1] * y, across[0] * x), dtype=int)
    for rank in range(12):
        i, j, k = rank // 6, rank // 3 % 2, rank % 3
        owner[k * z : (k + 1) * z, j * y : (j + 1) * y, i * x : (i + 1) * x] = rank
    owner = np.repeat(owner.ravel(), 8)
    for call in ("mpiio.write_all", "hdf5.write_all"):
        for rank, _, _, _, offset, size, pieces, stride, planes, plane_stride in calls_named(
            plan, call
        ).tolist():
            length = size // (pieces * planes)
            starts = offset + np.add.outer(np.arange(planes) * plane_stride, np.arange(pieces) * stride)
            places = np.add.outer(starts.ravel(), np.arange(length)).ravel()
            assert len(places) == x * y * z * 8
            assert (owner[places] == rank).all()


def test_twophase_has_one_aggregator_below_a_stripe_and_all_tasks_send_to_it():
    plan = plan_of("twophase", paper=True)
    assert [step.phase for step in plan.steps] == [
        "1-ranges",
        "2-counts",
        "3-offsets",
        "4-data",
        "open",
        "5-write",
        "close",
    ]
    sent = calls_named(plan, "mpi.exchange")
    for phase, size, messages in (("3-offsets", 4, 2), ("4-data", 1312, 1)):
        step = next(number for number, step in enumerate(plan.steps) if step.phase == phase)
        own = sent[sent[:, 1] == step]
        sends, receives = own[own[:, 5] > 0], own[own[:, 5] < 0]
        assert set(sends[:, 5].tolist()) == {size}
        assert Counter(sends[:, 0].tolist()) == dict.fromkeys(range(240), messages)  # the aggregator, too
        assert sorted(zip(sends[:, 0], sends[:, 4], sends[:, 5], strict=True)) == sorted(
            zip(receives[:, 4], receives[:, 0], -receives[:, 5], strict=True)
        )
        assert Counter(receives[:, 0].tolist()) == {0: 240 * messages}
    for call in ("mpi.allgather", "mpi.allreduce"):
        found = calls_named(plan, call)
        assert Counter(found[:, 0].tolist()) == dict.fromkeys(range(240), 2)
        assert set(found[:, 5].tolist()) == {4}
    written = calls_named(plan, "mpiio.write_at")
    assert (written[:, 0].tolist(), written[:, 5].tolist()) == ([0], [240 * 1312])


def test_twophase_of_several_stripes_has_an_aggregator_for_each():
    """As the loops of the microbenchmark assign requests to aggregators."""
    tasks, each, stripe, size = 96, 24, 1 << 20, 40_000
    plan = plan_of("twophase", {"tasks": tasks, "request_bytes": size, "rounds": 1})
    nodes = tasks // each
    to = [rank * size // stripe % nodes * each for rank in range(tasks)]
    sent = calls_named(plan, "mpi.exchange")
    sent = sent[sent[:, 5] == size]
    assert dict(sent[:, [0, 4]].tolist()) == dict(enumerate(to))
    expected = {
        number * each: min(stripe, size * to.count(number * each))
        for number in range(nodes)
        if number * stripe < tasks * size
    }
    written = calls_named(plan, "mpiio.write_at")
    assert dict(written[:, [0, 5]].tolist()) == expected
    assert (written[:, 4] == written[:, 0] // each * stripe).all()
