"""Real programs with a habit that costs time, and the same programs without it: what `diagnose` names."""

import re
import sys
from pathlib import Path

import pytest
from test_mpi import compiled, executed

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.metadata import WAITS_FOR_DEVICE
from ensembles.structure.access.pattern import find_pattern, line_of


def named(run: en.Run) -> dict[str, en.diagnose]:
    return {finding.id: finding for finding in en.diagnose(run).findings}


OPENS = """
import os
with_flags = (os.O_SYNC, os.O_DSYNC, 0, 0, os.O_SYNC)
for number, flags in enumerate(with_flags):
    for again in (0, flags if number else 0, flags):
        fd = os.open(f"file{number}", os.O_WRONLY | os.O_CREAT | again, 0o600)
        os.write(fd, bytes(1000))
        os.close(fd)
if os.fork() == 0:
    os.close(os.open("file1", os.O_WRONLY | os.O_SYNC))
    os.close(os.open("child", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o600))
    os.close(os.open("file2", os.O_RDONLY | os.O_SYNC))  # no write waits for the device
    os._exit(0)
os.wait()
"""


def test_flags_with_which_writes_wait_are_facts_of_files(preload, tmp_path):
    done = preload.execute(sys.executable, "-c", OPENS, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    facts = en.open(preload.run).info.file_facts
    flags = {Path(path).name: each["open.flags"] for path, each in facts.items() if "open.flags" in each}
    assert flags == {"file0": "O_SYNC", "file1": "O_DSYNC", "file4": "O_SYNC", "child": "O_DSYNC"}


SHARED = """
import os
def write(flags, first):
    fd = os.open("shared", os.O_WRONLY | os.O_CREAT | flags, 0o600)
    for number in range(20):
        os.pwrite(fd, bytes(65536), (2 * number + first) * 65536)
    os.close(fd)
if os.fork() == 0:
    write(0, 1)
    os._exit(0)
os.wait()
write(os.O_SYNC, 0)
"""


def test_only_the_tasks_that_opened_a_shared_file_with_flags_wait(preload, tmp_path):
    assert preload.execute(sys.executable, "-c", SHARED, cwd=tmp_path).returncode == 0
    run = en.open(preload.run)
    (rank,) = run.select(op="write", file=str(tmp_path / "shared"), offset="0..1").rank.tolist()
    facts = run.info.file_facts[str(tmp_path / "shared")]
    assert facts["open.flags"] == "O_SYNC"
    (finding,) = [each for each in en.diagnose(run).findings if each.id == "o-sync"]
    assert finding.evidence["writes"] == 20
    assert facts["open.flags.ranks"] == str(rank)


DESCRIPTORS = """
import os, sys
plain = os.open("data", os.O_WRONLY | os.O_CREAT, 0o600)
if sys.argv[1] == "later":
    for number in range(400):
        os.pwrite(plain, bytes(65536), number * 65536)
    os.close(plain)
synced = os.open("data", os.O_WRONLY | os.O_DSYNC)
if sys.argv[1] == "dup":
    synced = os.dup2(synced, 50)
if sys.argv[1] == "child" and os.fork():
    os.wait()
    sys.exit()
for number in range(400 if sys.argv[1] != "later" else 0):
    os.pwrite(plain, bytes(65536), number * 65536)
for number in range(int(sys.argv[2])):
    os.pwrite(synced, bytes(120), number * 120)
"""


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("how", ["at once", "later", "dup", "child"])
def test_only_the_writes_through_a_descriptor_with_flags_wait(how, count, preload, tmp_path):
    """A database writes its pages through one descriptor, and its header through another with O_DSYNC."""
    done = preload.execute(sys.executable, "-c", DESCRIPTORS, how, count, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    run = en.open(preload.run)
    writes = run.select(op="write", file=str(tmp_path / "data"))
    assert sorted(set(writes.requested[(writes.carried & WAITS_FOR_DEVICE) > 0].tolist())) == [120]
    counts = [finding.evidence["writes"] for finding in en.diagnose(run).findings if finding.id == "o-sync"]
    assert counts in ([], [count] if count > 3 else [])


def test_a_file_that_is_opened_a_thousand_times_has_the_fact_once(preload, tmp_path):
    script = "import os\nfor n in range(1000): os.close(os.open('f', os.O_WRONLY | os.O_CREAT | os.O_SYNC))"
    assert preload.execute(sys.executable, "-c", script, cwd=tmp_path).returncode == 0
    content = b"".join(path.read_bytes() for path in preload.run.rglob("*") if path.is_file())
    assert content.count(b"open.flags=O_SYNC") == 2  # the file holds its texts twice
    assert len(en.open(preload.run).select(op="open", file=str(tmp_path / "f"))) == 1000


@pytest.mark.parametrize("flag", ["sync", "dsync", None])
def test_dd_with_synchronous_writes(flag, preload, tmp_path):
    options = ["bs=64k", "count=64", *([f"oflag={flag}"] if flag else [])]
    done = preload.execute("dd", "if=/dev/zero", f"of={tmp_path / 'out'}", *options)
    assert done.returncode == 0
    found = named(en.open(preload.run))
    assert ("o-sync" in found) == (flag is not None)
    if flag:
        assert found["o-sync"].evidence["flags"] == f"O_{flag.upper()}"
        assert found["o-sync"].evidence["writes"] == 64


@pytest.mark.parametrize(("buffer", "expected"), [(4096, 4096), (0, 4096), (1 << 20, None)])
def test_streams_with_small_buffers(buffer, expected, preload, tmp_path):
    """The default buffer is a block of the file system, here 4 KiB."""
    program = preload.build("small_buffer")
    assert preload.execute(program, buffer, 400_000, tmp_path / "out").returncode == 0
    found = named(en.open(preload.run))
    assert ("stdio-buffer" in found) == (expected is not None)
    if expected:
        assert found["stdio-buffer"].evidence["write_bytes"] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("how", "sieves"), [("holes", True), ("together", False)])
def test_independent_writes_with_holes_through_romio(how, sieves, preload, tmp_path, capsys):
    program = compiled(preload, "interleaved_writes", "mpicc.mpich")
    _, run = executed(preload, "mpich", program, how, tasks=4)
    found = named(run)
    assert ("read-modify-write" in found) == sieves
    if sieves:
        evidence = found["read-modify-write"].evidence
        # A quarter of each buffer is the task's.
        assert evidence["written_bytes"] / evidence["asked_bytes"] == pytest.approx(4, rel=0.05)
        assert evidence["read_bytes"] > 0.8 * evidence["written_bytes"] / 2
    line = line_of(find_pattern(run))
    assert line.startswith("4 x write 512 KiB, strided by 2 MiB; one shared file")
    # The program reads nothing.
    assert main(["info", run.path]) == 0
    assert ("of the bytes read are read by libraries inside writes" in capsys.readouterr().out) == sieves


DATASET = """
import sys, h5py, numpy as np
mode = sys.argv[1]
file = h5py.File("data.h5", "w", rdcc_nbytes=1 << 26)
plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
plist.set_chunk((64, 512))
if mode == "filled":
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5py.h5d.FILL_TIME_ALLOC)
    plist.set_fill_value(np.array(3.0))
else:
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
space = h5py.h5s.create_simple((512, 4096))
data = h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, plist))
for row in range(0, 512, 64):
    data[row : row + 64, :] = row
if mode == "objects":
    for number in range(2000):
        group = file.create_group(f"g{number}")
        group.attrs["a"] = number
        group["x"] = np.arange(4)
file.close()
if mode == "objects":
    with h5py.File("data.h5") as file:
        sum(file[f"g{number}"].attrs["a"] + file[f"g{number}/x"][0] for number in range(2000))
"""


@pytest.mark.parametrize(
    ("mode", "cause"), [("filled", "hdf5-refill"), ("objects", "hdf5-metadata"), ("plain", None)]
)
def test_h5py_with_fill_values_and_with_many_objects(mode, cause, preload, tmp_path):
    done = preload.execute(sys.executable, "-c", DATASET, mode, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    found = named(en.open(preload.run))
    assert {"hdf5-refill", "hdf5-metadata"} & set(found) == ({cause} if cause else set())
    if cause == "hdf5-refill":
        evidence = found[cause].evidence
        assert evidence["write_bytes"] / evidence["write_needed_bytes"] == pytest.approx(2, rel=0.05)
    if cause == "hdf5-metadata":
        assert found[cause].evidence["requests"] > 1000


BATCHES = """
import sys, h5py, numpy as np
rng = np.random.default_rng(1)
with h5py.File("data.h5", "w") as file:
    file.create_dataset("x", data=rng.normal(size=(10_000, 128)), chunks=(64, 128), compression="gzip")
with h5py.File("data.h5", rdcc_nbytes=int(sys.argv[1])) as file:
    data = file["x"]
    for batch in range(60):
        data[np.sort(rng.choice(10_000, 32, replace=False))]
"""


def test_random_batches_of_compressed_chunks_are_read_and_unpacked_again_and_again(preload, tmp_path):
    """A training loop: HDF5's own work on chunks outweighs the reads, and a larger chunk cache saves it."""
    work_s = {}
    for cache in (1, 1 << 26):
        run = tmp_path / str(cache)
        done = preload.execute(
            sys.executable, "-c", BATCHES, cache, cwd=tmp_path, environment={"ENSIO_DIR": str(run)}
        )
        assert (done.returncode, done.stderr) == (0, b"")
        read = en.open(run)
        found = named(read)
        assert ("hdf5-refill" in found) == (cache == 1)
        # The chunks were compressed once, in calls inside of which the storage calls take next to nothing.
        filters = found["hdf5-filters"]
        assert {"H5Dwrite", "H5Idec_ref"} & set(filters.where.calls or ())
        assert filters.evidence["hdf5_time_s"] < read.events.duration[read.events.depth == 0].sum() * 1e-9
        calls = read.select(call="H5Dread")
        work_s[cache] = float(calls.duration.sum()) * 1e-9
        if cache == 1:
            finding = found["hdf5-refill"]
    measured_s = work_s[1] - work_s[1 << 26]
    low_s, high_s = finding.gain_s
    assert low_s < measured_s
    assert high_s > 0.5 * measured_s  # the reads alone are a tenth of it
    assert "rdcc_nbytes" in finding.advice
    assert "fill" not in finding.advice


TRANSACTIONS = """
import sqlite3
base = sqlite3.connect("t.db", isolation_level=None)
base.execute("create table t (n integer, text text)")
for n in range(30):
    base.execute("begin")
    base.executemany("insert into t values (?, ?)", [(k, "x" * (37 * (n + k) % 700)) for k in range(20 + n)])
    base.execute("commit")
"""


def test_equal_transactions_on_two_files_repeat_in_each_of_them(preload, tmp_path, capsys):
    """The pattern said that calls were without repetition, and not that those of each file repeat."""
    assert preload.execute(sys.executable, "-c", TRANSACTIONS, cwd=tmp_path).returncode == 0
    assert main(["pattern", str(preload.run)]) == 0
    together = capsys.readouterr().out
    assert "without repetition" in together
    assert "Those of one file may: --file" in together
    assert main(["pattern", str(preload.run), "--file", "*-journal", "--op", "write"]) == 0
    journal = capsys.readouterr().out
    assert re.match(r"\d+ x write 4 B to 4 KiB, the same bytes again; one file\n", journal)
    assert "Those of one file" not in journal
