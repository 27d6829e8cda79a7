"""Python programs with h5py, whose HDF5 is loaded locally, and processes with more than one HDF5."""

import subprocess
import sys
from collections import Counter

import pytest
from test_hdf5 import counts, done, flags

import ensembles


def files(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_h5py_gives_the_same_and_is_recorded(preload, tmp_path):
    traced, untraced = tmp_path / "traced", tmp_path / "untraced"
    finished = {}
    for folder, execute in ((traced, preload.execute), (untraced, preload.untraced)):
        folder.mkdir()
        program = preload.source("h5py_calls").with_suffix(".py")
        finished[folder] = execute(sys.executable, program, folder, timeout=600)
    with_us, without = finished.values()
    assert (with_us.returncode, with_us.stdout, with_us.stderr) == (0, without.stdout, without.stderr)
    assert files(traced) == files(untraced)

    run = ensembles.open(preload.run)
    for number in range(4):
        here = run.select(layer="hdf5", file=str(traced / f"{number}.h5"))
        calls = counts(here)
        assert (calls["H5Fcreate"], calls["H5Fopen"], calls["H5Dcreate"]) == (1, 1, 2)
        assert calls["H5Awrite"] == calls["H5Aread"] == 1
        moved = Counter()
        for name, _, bytes_moved, error, _ in done(here):
            if name in ("H5Dread", "H5Dwrite"):
                assert error == 0
                moved[name] += bytes_moved
        # 1000 int, 100 x 100 and 10 x 2 double; words are references of 8 or 16 bytes
        assert moved["H5Dwrite"] - (4000 + 80000 + 160) in (3 * 8, 3 * 16)
        assert moved["H5Dread"] - (400 + 12 + 80000) in (3 * 8, 3 * 16)
        assert [e[0] for e in done(here) if e[2] < 0] == ["H5Oopen"]  # "nothing"
    below = run.select(layer="posix", file=str(traced / "*.h5"))
    assert (below.depth >= 1).all()
    assert counts(run.select(file=str(traced / "left.h5")))["H5Fcreate"] == 1
    assert run.notes == []


def test_child_goes_on_with_its_parents_file(preload, tmp_path):
    program = preload.source("h5py_fork").with_suffix(".py")
    finished = preload.execute(sys.executable, program, cwd=tmp_path, timeout=600)
    assert (finished.returncode, finished.stderr) == (0, b"")
    run = ensembles.open(preload.run)
    assert done(run.select(call="H5Dread", file=str(tmp_path / "a.h5"))) == [("H5Dread", 80, 80, 0, 2048)]
    assert sum("python" in process.program for process in run.info.processes) == 2


LINKS = """
import h5py, numpy as np
with h5py.File("b.h5", "w") as b:
    b["x"] = np.arange(10)
layout = h5py.VirtualLayout((10,), "i8")
layout[:] = h5py.VirtualSource("b.h5", "x", (10,))
with h5py.File("a.h5", "w") as a:
    a["link"] = h5py.ExternalLink("b.h5", "/x")
    a.create_virtual_dataset("virtual", layout)
a = h5py.File("a.h5", "r")
assert a["link"][2:5].sum() == 9 and a["virtual"][...].sum() == 45
"""


def test_calls_belong_to_the_file_that_the_object_is_in(preload, tmp_path):
    preload.execute(sys.executable, "-c", LINKS, cwd=tmp_path, check=True, timeout=600)
    run = ensembles.open(preload.run)
    reads = {name: done(run.select(call="H5Dread", file=str(tmp_path / name))) for name in ("a.h5", "b.h5")}
    assert reads == {
        "a.h5": [("H5Dread", 80, 80, 0, -1)],  # virtual: its bytes are elsewhere
        "b.h5": [("H5Dread", 24, 24, 0, 2048 + 2 * 8)],
    }


def library_of(recorder, package: str):
    """A shared library that uses one of Debian's HDF5 libraries."""
    library = recorder.folder / f"library-{package}.so"
    source = recorder.source("hdf5_library")
    options = [*flags("cflags"), "-shared", "-fPIC", source, "-o", library, *flags("libs", package)]
    subprocess.run(["gcc", *options], check=True)
    return library


def written(events) -> list[int]:
    return [moved for call, _, moved, _, _ in done(events) if call == "H5Dwrite"]


def test_two_hdf5_libraries_in_one_process(preload, tmp_path):
    library, other = library_of(preload, "hdf5-serial"), "libhdf5_serial.so.103"
    program = preload.source("two_hdf5").with_suffix(".py")
    finished = preload.execute(sys.executable, program, library, other, cwd=tmp_path, timeout=600)
    assert (finished.returncode, finished.stderr) == (0, b"")
    ours, theirs = finished.stdout.split()
    assert ours == theirs  # one number, two files
    run = ensembles.open(preload.run)
    for name, expected in (("ours.h5", [800, 80]), ("theirs.h5", [4000, 8000])):
        here = run.select(layer="hdf5", file=str(tmp_path / name))
        assert written(here) == expected
        assert counts(here)["H5Fcreate"] == 1
    assert counts(run.select(file=str(tmp_path / "theirs.h5")))["H5Fclose"] == 1
    assert len(run.select(layer="posix", file=str(tmp_path / "direct.h5"))) > 0


def test_each_caller_gets_the_library_it_is_linked_to_and_none_is_kept(preload, tmp_path):
    libraries = library_of(preload, "hdf5-serial"), library_of(preload, "hdf5-openmpi")
    program = preload.source("hdf5_versions").with_suffix(".py")
    finished = {}
    for way, execute in (("traced", preload.execute), ("untraced", preload.untraced)):
        folder = tmp_path / way
        folder.mkdir()
        finished[way] = execute(sys.executable, program, *libraries, cwd=folder, timeout=600)
        assert (finished[way].returncode, finished[way].stderr) == (0, b"")
    assert finished["traced"].stdout == finished["untraced"].stdout
    first, second, still_there = finished["traced"].stdout.split()
    assert (first, still_there) == (second, b"0")
    run = ensembles.open(preload.run)
    for name, expected in (("first.h5", [400]), ("second.h5", [800]), ("again.h5", 20 * [1200])):
        assert written(run.select(layer="hdf5", file=str(tmp_path / "traced" / name))) == expected


TOOLS = {
    "dump": "h5dump a.h5",
    "dump of the heads": "h5dump -H -p a.h5",
    "dump of what is missing": "h5dump -d /nothing a.h5",
    "dump of no file": "h5dump nothing.h5",
    "ls": "h5ls -r -v a.h5",
    "same": "h5diff a.h5 b.h5",
    "different": "h5diff -v a.h5 c.h5",
    "repack": "h5repack -f GZIP=1 -l packed:CHUNK=20x20 a.h5 d.h5 && h5dump d.h5",
    "copy": "h5copy -i a.h5 -o e.h5 -s /group -d /copied && h5dump e.h5",
    "stat": "h5stat a.h5",
    "import and export": "h5dump -o plain.txt -y -d /plain a.h5 && cat plain.txt",
}


@pytest.fixture(scope="module")
def tool_folder(tmp_path_factory):
    """Three files that are the same, the same, and different."""
    folder = tmp_path_factory.mktemp("tools")
    code = """
import h5py, numpy as np, sys
for name in "abc":
    with h5py.File(f"{sys.argv[1]}/{name}.h5", "w", libver=("earliest", "v110")) as file:
        file["plain"] = np.arange(100) + (name == "c")
        file["group/packed"] = np.ones((50, 50))
        file["packed"] = h5py.SoftLink("/group/packed")
        file["chunked"] = file.create_dataset("c", (64, 64), "f4", chunks=(8, 8), compression="gzip")
        file["words"] = ["a", "bb", "ccc"]
        file["plain"].attrs["unit"] = "metre"
        file["elsewhere"] = h5py.ExternalLink("b.h5", "/plain")
"""
    subprocess.run([sys.executable, "-c", code, folder], check=True)
    return folder


@pytest.mark.parametrize("command", TOOLS.values(), ids=TOOLS.keys())
def test_tools_of_hdf5_say_the_same(preload, tool_folder, tmp_path, command):
    seen = []
    for way, execute in (("traced", preload.execute), ("untraced", preload.untraced)):
        folder = tmp_path / way
        folder.mkdir()
        for path in tool_folder.glob("?.h5"):
            (folder / path.name).write_bytes(path.read_bytes())
        one_run = {"ENSIO_LAUNCH": "script"}
        done_ = execute("sh", "-c", command, cwd=folder, timeout=600, environment=one_run)
        thread = done_.stderr.replace(b"traced", b"")
        seen.append((done_.returncode, done_.stdout, thread, sorted(path.name for path in folder.iterdir())))
    assert seen[0] == seen[1]
    run = ensembles.open(preload.run)
    if "nothing.h5" not in command:
        assert len(run.select(layer="hdf5", file="*/a.h5")) > 0
