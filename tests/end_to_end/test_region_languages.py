"""Phases and regions of programs in C++, Fortran and Python."""

import resource
import subprocess
import sys
from collections import Counter

import pytest
from places import BUILD, ENSIO_CC, PROGRAMS
from test_regions import INCLUDE, STRICT, occurrences, run

import ensembles


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_regions_of_cpp_end_with_their_block(recorder, tmp_path, standard):
    driver = [ENSIO_CC] if recorder.way == "relinked" else []
    program = tmp_path / "program"
    source = ["g++", *STRICT, f"-std={standard}", INCLUDE, PROGRAMS / "regions.cc", "-o", program]
    subprocess.run([*driver, *source], check=True)
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run([program], env=recorder.environment(), stdout=out)
    assert done.returncode == 3
    recorded = ensembles.open(recorder.run)
    assert occurrences(recorded) == {"loop": 3, "throws": 3}
    assert recorded.regions.ended.all()
    assert len(recorded.select(region="throws", call="write")) == 3


@pytest.mark.all_cases
def test_regions_of_fortran_are_kept(recorder, tmp_path):
    module, program = BUILD / "include/ensio/ensio.f90", tmp_path / "program"
    source = [module, PROGRAMS / "regions.f90", "-J", tmp_path, "-o", program]
    if recorder.way == "relinked":
        command = [ENSIO_CC, "gfortran", *source]
    else:
        command = ["gfortran", *source, BUILD / "lib/libensio-regions.a"]
    subprocess.run(["gfortran", *source[:2], "-J", tmp_path, "-fsyntax-only", "-std=f2008"], check=True)
    subprocess.run(command, check=True)
    done = recorder.execute(program, cwd=tmp_path)
    assert done.stdout.split() == [b"done"]
    recorded = ensembles.open(recorder.run)
    assert occurrences(recorded) == {"record": 4}
    assert occurrences(recorded, "phase") == {"setup": 1, "work": 1}
    if recorder.way == "preloaded":
        assert len(recorded.select(region="record", op="write")) == 4
    assert (tmp_path / "regions.f90.out").stat().st_size == 16
    assert run([program], tmp_path, ENSIO_DISABLE="1").stdout.split() == [b"done"]


def test_fortran_program_has_the_function_once_in_every_order(tmp_path):
    module, library = BUILD / "include/ensio/ensio.f90", BUILD / "lib/libensio-regions.a"
    for static in ([], ["-static"]):
        program = tmp_path / f"program{len(static)}"
        source = [module, PROGRAMS / "regions.f90", library, "-J", tmp_path]
        subprocess.run([ENSIO_CC, "gfortran", *static, *source, "-o", program], check=True)
        run([program], tmp_path, ENSIO_DIR=f"run{len(static)}")
        assert occurrences(ensembles.open(tmp_path / f"run{len(static)}")) == {"record": 4}


PYTHON = """
import sys, os
from ensembles.recorder.annotate import phase, region
assert "numpy" not in sys.modules
phase("read")
with region("a file"):
    fd = os.open("from-python", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"12345")
try:
    with region("fails"):
        os.write(fd, b"123")
        raise ValueError
except ValueError:
    pass

@region("decorated")
def work():
    os.write(fd, b"1")

for i in range(4):
    work()
phase("last \\u00fc")
print("ok")
"""


def test_python_programs_name_regions(preload, tmp_path):
    done = preload.execute(sys.executable, "-c", PYTHON, cwd=tmp_path)
    assert done.stdout == b"ok\n", done.stderr
    recorded = ensembles.open(preload.run)
    assert occurrences(recorded) == {"a file": 1, "fails": 1, "decorated": 4}
    assert occurrences(recorded, "phase") == {"read": 1, "last ü": 1}
    assert recorded.regions.ended.all()
    for name, sizes in {"a file": [5], "fails": [3], "decorated": [1] * 4}.items():
        assert recorded.select(region=name, call="write").moved.tolist() == sizes


def test_python_programs_without_a_recorder_run_the_same(preload, tmp_path):
    done = preload.untraced(sys.executable, "-c", PYTHON, cwd=tmp_path)
    assert done.stdout == b"ok\n", done.stderr
    assert done.returncode == 0


def test_a_forked_child_is_in_its_parents_phase_but_ends_no_region_of_it(preload, tmp_path):
    program = PYTHON.split("phase(")[0] + (
        "with region('parent'):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        with region('child'): os.close(os.open('f', os.O_CREAT))\n"
        "    else:\n"
        "        os.waitpid(pid, 0)\n"
    )
    done = preload.execute(sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert occurrences(ensembles.open(preload.run)) == {"parent": 1, "child": 1}


def test_names_beyond_the_room_are_told_apart_no_more_and_long_ones_are_cut(preload, tmp_path):
    program = PYTHON.split("phase(")[0] + (
        "for i in range(2100):\n    with region(f'{i}'): pass\nwith region('x' * 300): pass\n"
    )
    short = PYTHON.split("phase(")[0] + "with region('x' * 300): pass\nwith region(''): pass\n"
    assert preload.execute(sys.executable, "-c", program, cwd=tmp_path).returncode == 0
    counts = occurrences(ensembles.open(preload.run))
    assert counts[""] == 2101 - 2048
    assert counts["0"] == counts["2047"] == 1
    preload.run = tmp_path / "another"
    assert preload.execute(sys.executable, "-c", short, cwd=tmp_path).returncode == 0
    assert occurrences(ensembles.open(preload.run)) == {"x" * 255: 1, "": 1}


def test_many_threads_mark_regions_at_the_same_time(preload, tmp_path):
    program = PYTHON.split("phase(")[0] + (
        "import threading\n"
        "def work():\n"
        "    for i in range(300):\n"
        "        with region('a'):\n"
        "            with region('b'): pass\n"
        "threads = [threading.Thread(target=work) for _ in range(20)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    assert preload.execute(sys.executable, "-c", program, cwd=tmp_path).returncode == 0
    table = ensembles.open(preload.run).regions
    assert occurrences(ensembles.open(preload.run)) == {"a": 6000, "b": 6000}
    assert table.ended.all()
    per_thread = Counter(table.thread.tolist())
    assert len(per_thread) == 20
    assert set(per_thread.values()) == {600}
    for thread in per_thread:
        own = table[table.thread == thread]
        outer, inner = own.named("a"), own.named("b")
        assert (inner.start >= outer.start).all()
        assert (inner.start + inner.duration <= outer.start + outer.duration).all()


def test_regions_without_space_are_counted_as_missing(preload, tmp_path):
    program = PYTHON.split("phase(")[0] + (
        "for i in range(20_000):\n    with region('a'): pass\nprint('ok')\n"
    )
    limit = (260_000, 260_000)  # from the beginning: later, the spool has room for more already
    done = preload.execute(
        sys.executable,
        "-c",
        program,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ok\n", b"")
    recorded = ensembles.open(preload.run)
    ended = int(recorded.regions.ended.sum())
    assert 100 < ended < 5000
    # A beginning and an end each; of the last that began, the end may be the first that found no space.
    assert recorded.info.dropped_events == pytest.approx(2 * (20_000 - ended), abs=2)
    assert any("limit on the size of files" in note for note in recorded.notes)
