"""Calls of HDF5 are recorded as they happened, and happen as they would have without us."""

import functools
import os
import re
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from test_stdio import counts, done

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

WHEELS = Path(h5py.__file__).parent.parent / "h5py.libs"


def flags(kind: str, package: str = "hdf5-serial") -> list[str]:
    command = ["pkg-config", f"--{kind}", package]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def shared() -> list[str]:
    return flags("libs")


def static() -> list[str]:
    """Debian's static library, and what its settings say that it needs."""
    folder = Path(flags("libs-only-L")[0].removeprefix("-L"))
    settings = (folder / "libhdf5.settings").read_text()
    return [str(folder / "libhdf5.a"), *re.search(r"Extra libraries: *(.*)", settings).group(1).split()]


def newest() -> list[str]:
    """HDF5 2 of h5py's wheel, for a program that is compiled with older headers."""
    libraries = list(WHEELS.glob("libhdf5-*.so.*"))
    if not libraries:
        pytest.skip(f"h5py does not bring its own HDF5: there is no {WHEELS}")
    return [str(libraries[0]), f"-Wl,-rpath,{WHEELS}", "-DH5Dread_chunk=H5Dread_chunk1"]


LIBRARIES = {"shared": shared, "static": static, "2.0": newest}


def said(execute, program, folder) -> tuple[subprocess.CompletedProcess, list[tuple]]:
    """Run a program that tells on descriptor 3 what it did, in its own folder."""
    folder.mkdir()
    log = folder.parent / f"{folder.name}.log"
    command = ("sh", "-c", 'cd "$1"; exec "$0" 3>"$2"', program, folder, log)
    finished = execute(*command, stdin=subprocess.DEVNULL, timeout=600)
    lines = [line.split() for line in log.read_text().splitlines()]
    return finished, [(name, *map(int, numbers)) for name, *numbers in lines]


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES.keys())
def test_events_are_what_the_program_did_and_nothing_changes(recorder, tmp_path, library):
    if library is static and recorder.way == "preloaded":
        library = shared  # nothing is there to be preloaded
    program = recorder.build("hdf5_calls", *flags("cflags"), *library())
    checked = {"HDF5_DISABLE_VERSION_CHECK": "2"}
    execute = functools.partial(recorder.execute, environment=checked)
    traced, expected = said(execute, program, tmp_path / "traced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HDF5_DISABLE_VERSION_CHECK", "2")
        untraced, without = said(recorder.untraced, program, tmp_path / "untraced")
    assert (traced.stdout, traced.stderr) == (untraced.stdout, untraced.stderr) == (b"", b"")
    assert traced.returncode == untraced.returncode == 7
    assert expected == without

    run = ensembles.open(recorder.run)
    here = done(run.select(layer="hdf5", file=str(tmp_path / "traced/a.h5")))
    assert here == expected
    assert counts(run.select(layer="hdf5", file="*/missing/b.h5")) == {"H5Fopen": 1}
    not_in_this_program = {"H5Dread_multi", "H5Dwrite_multi", "H5Gcreate_anon"}
    table = {call.name for call in run.calls if call.layer == "hdf5"}
    assert {name for name, *_ in expected} == table - not_in_this_program
    assert not run.select(layer="hdf5").depth.any()
    assert run.notes == []


@pytest.mark.all_cases
def test_what_hdf5_does_by_posix_lies_one_deeper(recorder, tmp_path):
    library = static if recorder.way == "relinked" else shared  # relinking does not see into shared libraries
    program = recorder.build("hdf5_calls", *flags("cflags"), *library())
    said(recorder.execute, program, tmp_path / "data")
    run = ensembles.open(recorder.run)
    path = str(tmp_path / "data/a.h5")
    below = run.select(layer="posix", file=path)
    assert set(below.depth.tolist()) == {1}
    assert counts(below).keys() >= {"open", "pwrite", "close"}
    (whole,) = (event for event in done(run.select(call="H5Dread", file=path)) if event[1] == 4096)
    writes = [event[4] for event in done(run.select(call="pwrite", file=path)) if event[1] == 4096]
    assert whole[4] in writes  # HDF5 and the kernel agree on where the dataset lies
    assert path in {run.files[number] for number in run.select(call="H5Dwrite").file}


def test_several_datasets_in_one_call(recorder, tmp_path):
    program = recorder.build("hdf5_multi", *flags("cflags"), *newest())
    environment = {"HDF5_DISABLE_VERSION_CHECK": "2"}
    recorder.execute(program, tmp_path / "a.h5", environment=environment, check=True, timeout=600)
    run = ensembles.open(recorder.run)
    events = done(run.select(file=str(tmp_path / "a.h5"), call="H5Dwrite_multi,H5Dread_multi"))
    assert events == [("H5Dwrite_multi", 280, 280, 0, -1), ("H5Dread_multi", 280, 280, 0, -1)]


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_parallel_writes_of_all_ranks(recorder, tmp_path, flavour):
    options = flags("cflags", f"hdf5-{flavour}") + flags("libs", f"hdf5-{flavour}")
    program = recorder.build("hdf5_parallel", *options, compiler=f"mpicc.{flavour}")
    path, rows, columns, tasks = tmp_path / "a.h5", 20, 30, 3
    bytes_of_rank = rows * columns * 8
    # The preload library is for the tasks and not for their launcher.
    inner = {} if recorder.way == "relinked" else {"LD_PRELOAD": str(recorder.library)}
    settings = [f"{key}={value}" for key, value in inner.items()]
    command = [f"mpiexec.{flavour}", "-n", tasks, "env", *settings, program, path, rows, columns]
    environment = {"ENSIO_DIR": str(recorder.run), **ANY_TASKS, **os.environ}
    finished = subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=600
    )
    assert finished.returncode == 0, finished.stderr
    lines = sorted(tuple(map(int, line.split())) for line in finished.stdout.splitlines())
    begin = lines[0][1]
    assert lines == [(rank, begin, 0, 0) for rank in range(tasks)]
    run = ensembles.open(recorder.run)
    assert run.tasks == tasks
    assert "/etc/gnutls/config" not in run.files
    for rank in range(tasks):
        here = run.select(layer="hdf5", file=str(path), rank=rank)
        at = begin + rank * bytes_of_rank
        assert done(here) == [
            ("H5Fcreate", 0, 0, 0, -1),
            ("H5Dcreate", 0, 0, 0, -1),
            ("H5Dwrite", bytes_of_rank, bytes_of_rank, 0, at),
            ("H5Dread", bytes_of_rank, bytes_of_rank, 0, at),
            ("H5Dclose", 0, 0, 0, -1),
            ("H5Fclose", 0, 0, 0, -1),
        ]
    written = np.fromfile(path, "f8", rows * columns, offset=begin + bytes_of_rank)
    assert np.array_equal(written, np.arange(rows * columns) + 1e6)
    if recorder.way == "preloaded":
        below = run.select(layer="posix", file=str(path), op="write")
        assert (below.depth >= 1).all()
        assert int(below.moved.sum()) >= tasks * bytes_of_rank


def test_layers_that_are_not_named_are_not_recorded(recorder, tmp_path):
    program = recorder.build("hdf5_calls", *flags("cflags"), *shared())
    for layers, there in (("posix,stdio", False), ("hdf5", True)):
        recorder.run = tmp_path / layers
        execute = functools.partial(recorder.execute, environment={"ENSIO_LAYERS": layers})
        said(execute, program, tmp_path / f"data-{layers}")
        run = ensembles.open(recorder.run)
        seen = {run.calls[call].layer for call in run.events.call}
        assert ("hdf5" in seen) == there
        assert run.events.depth.max(initial=0) == 0


def test_unknown_layer_is_told_with_all_that_there_are(preload):
    finished = preload.execute("true", environment={"ENSIO_LAYERS": "tape"})
    assert re.search(rb"\(the layers are posix, stdio, .*hdf5.*\)", finished.stderr)


def test_excluded_files_are_left_out(recorder, tmp_path):
    program = recorder.build("hdf5_calls", *flags("cflags"), *shared())
    excluded = {"ENSIO_EXCLUDE": f"{tmp_path}/data/*"}
    said(functools.partial(recorder.execute, environment=excluded), program, tmp_path / "data")
    run = ensembles.open(recorder.run)
    assert len(run.select(file=f"{tmp_path}/data/*")) == 0
    assert run.info.processes[0].excluded_calls > 40


def test_programs_without_hdf5_get_nothing_of_it(relinked):
    program = relinked.build("threads")
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    assert "ensio_prepare" in symbols
    assert "H5" not in symbols


def test_call_without_hdf5_fails_and_does_not_crash(preload):
    code = "import ctypes; print(ctypes.CDLL(None).H5Dwrite(1, 2, 3, 4, 5, None))"
    finished = preload.execute("/usr/bin/python3", "-c", code)
    assert (finished.returncode, finished.stdout) == (0, b"-1\n")
