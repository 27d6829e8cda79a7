"""Calls of NetCDF are recorded as they happened, and happen as they would have without us."""

import functools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands_here import told
from test_stdio import counts, done

import ensembles


def said(execute, program, folder, *arguments) -> tuple[subprocess.CompletedProcess, list[tuple]]:
    """Run a program that tells on descriptor 3 what it did, in its own folder."""
    folder.mkdir()
    log = folder.parent / f"{folder.name}.log"
    script = 'cd "$1"; log=$2; shift 2; exec "$0" "$@" 3>"$log"'
    finished = execute(
        "sh", "-c", script, program, folder, log, *arguments, stdin=subprocess.DEVNULL, timeout=600
    )
    lines = [line.split() for line in log.read_text().splitlines()]
    return finished, [(name, *map(int, numbers)) for name, *numbers in lines]


def fortran(recorder, name: str, compiler: str, options: list[str], libraries: list[str]) -> Path:
    """Compile ``programs/<name>.f90``."""
    program = recorder.folder / f"{name}-{recorder.way}"
    driver = [recorder.driver] if recorder.way == "relinked" else []
    source = recorder.source(name).with_suffix(".f90")
    command = [*driver, compiler, "-w", f"-J{recorder.folder}", *options, source, "-o", program, *libraries]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize("kind", ["classic", "4"])
def test_events_are_what_the_program_did_and_nothing_changes(recorder, tmp_path, kind):
    program = recorder.build("netcdf_calls", "-lnetcdf")
    traced, expected = said(recorder.execute, program, tmp_path / "traced", kind)
    untraced, without = said(recorder.untraced, program, tmp_path / "untraced", kind)
    assert (traced.stdout, traced.stderr) == (untraced.stdout, untraced.stderr) == (b"", b"")
    assert traced.returncode == untraced.returncode == 7
    assert expected == without

    run = ensembles.open(recorder.run)
    here = run.select(layer="netcdf")
    assert done(here) == expected
    assert counts(run.select(layer="netcdf", file="*/traced/missing.nc")) == {"nc_open": 1}
    assert {run.files[number] for number in here.file} == {
        str(tmp_path / "traced" / name) for name in ("a.nc", "missing.nc")
    }
    parallel = {"nc_create_par", "nc_open_par", "nc_var_par_access"}
    assert {name for name, *_ in expected} == {c.name for c in run.calls if c.layer == "netcdf"} - parallel
    assert not here.depth.any()
    assert run.notes == []


def test_bytes_count_once_and_inner_calls_lie_deeper(preload, tmp_path):
    program = preload.build("netcdf_calls", "-lnetcdf")
    said(preload.execute, program, tmp_path / "data", "4")
    run = ensembles.open(preload.run)
    path = str(tmp_path / "data/a.nc")
    put = run.select(layer="netcdf", op="write")
    below = run.select(layer="posix", op="write", file=path)
    assert int(below.moved.sum()) > 4800
    assert (below.depth == 2).all()  # NetCDF, HDF5, POSIX
    assert set(run.select(layer="hdf5", file=path).depth.tolist()) == {1}
    assert counts(run.select(layer="hdf5", file=path))["H5Dwrite"] >= 10
    assert told("info", preload.run)["bytes_written"] == int(put.moved[put.moved > 0].sum())


def test_layers_that_are_not_named_are_not_recorded(recorder, tmp_path):
    program = recorder.build("netcdf_calls", "-lnetcdf")
    for layers, there in (("posix,stdio", False), ("netcdf", True)):
        recorder.run = tmp_path / layers
        execute = functools.partial(recorder.execute, environment={"ENSIO_LAYERS": layers})
        said(execute, program, tmp_path / f"data-{layers}", "classic")
        run = ensembles.open(recorder.run)
        assert ({run.calls[call].layer for call in run.events.call} == {"netcdf"}) == there


def test_excluded_files_are_left_out(recorder, tmp_path):
    program = recorder.build("netcdf_calls", "-lnetcdf")
    excluded = {"ENSIO_EXCLUDE": f"{tmp_path}/data/*"}
    said(functools.partial(recorder.execute, environment=excluded), program, tmp_path / "data", "classic")
    run = ensembles.open(recorder.run)
    assert len(run.select(file=f"{tmp_path}/data/*")) == 0
    assert run.info.processes[0].excluded_calls > 30


def test_programs_without_netcdf_get_nothing_of_it(relinked):
    program = relinked.build("threads")
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    assert "ensio_prepare" in symbols
    assert "nc_" not in symbols.replace("sync_", "").replace("func_", "")


def test_functions_of_others_with_such_names_are_called(preload, tmp_path):
    """A library that has nothing to do with NetCDF may have a function nc_open."""
    source, library = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text("int nc_open(const char *host, int port, int *handle) { return *handle = port + 1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    program = tmp_path / "program.c"
    program.write_text(
        "#include <stdio.h>\nint nc_open(const char *, int, int *);\n"
        'int main(void) { int h = 0, r = nc_open("host", 4, &h); printf("%d %d\\n", r, h); return 0; }\n'
    )
    subprocess.run(
        ["gcc", program, library, f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "program"], check=True
    )
    finished = preload.execute(tmp_path / "program")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, b"5 5\n", b"")


def test_call_without_netcdf_fails_and_does_not_crash(preload):
    code = "import ctypes; print(ctypes.CDLL(None).nc_put_var_int(1, 2, None))"
    finished = preload.execute("/usr/bin/python3", "-c", code)
    assert (finished.returncode, finished.stdout) == (0, b"-36\n")


def test_netcdf4_python_gives_the_same_and_is_recorded(preload, tmp_path):
    traced, untraced = tmp_path / "traced", tmp_path / "untraced"
    finished = {}
    for folder, execute in ((traced, preload.execute), (untraced, preload.untraced)):
        folder.mkdir()
        program = preload.source("netcdf4_calls").with_suffix(".py")
        finished[folder] = execute(sys.executable, program, cwd=folder, timeout=600)
    with_us, without = finished.values()
    assert (with_us.returncode, with_us.stdout, with_us.stderr) == (0, without.stdout, without.stderr)
    sizes = [{path.name: path.stat().st_size for path in folder.iterdir()} for folder in (traced, untraced)]
    assert sizes[0] == sizes[1]

    run = ensembles.open(preload.run)
    for name in ("four.nc", "classic.nc"):
        here = run.select(layer="netcdf", file=str(traced / name))
        calls = counts(here)
        assert (calls["nc_create"], calls["nc_open"], calls["nc_close"]) == (1, 1, 2)
        moved = Counter()
        for call, _, bytes_moved, error, _ in done(here):
            assert error == 0 or call in ("nc_get_att", "nc_redef")  # netCDF4 looks whether it may
            moved[call[:6]] += bytes_moved if bytes_moved > 0 else 0
        assert (moved["nc_put"], moved["nc_get"]) == (3 * 800 + 80, 400 + 800)
    assert len(run.select(layer="hdf5", file=str(traced / "four.nc"))) > 10
    assert run.notes == []


def test_two_netcdf_libraries_in_a_process(preload, tmp_path):
    """The wheel of netCDF4 brings its own library; that of the system numbers its files alike."""
    library = tmp_path / "library.so"
    options = ["-shared", "-fPIC", preload.source("netcdf_library"), "-o", library, "-lnetcdf"]
    subprocess.run(["gcc", *options], check=True)
    program = preload.source("two_netcdf").with_suffix(".py")
    finished = preload.execute(sys.executable, program, library, cwd=tmp_path, timeout=600)
    assert (finished.returncode, finished.stderr) == (0, b"")
    ours, theirs = finished.stdout.split()
    assert ours == theirs  # one number, two files
    run = ensembles.open(preload.run)
    for name, expected in (("ours.nc", [800, 80]), ("theirs.nc", [4000, 4000])):
        events = done(run.select(layer="netcdf", file=str(tmp_path / name), op="write"))
        assert [bytes_moved for _, _, bytes_moved, _, _ in events] == expected
        assert counts(run.select(layer="netcdf", file=str(tmp_path / name)))["nc_close"] == 1


# The program names the Fortran library alone, as a shared one; or that statically, and the C library too.
FORTRAN = {"shared": ["-lnetcdff"], "static": ["-Wl,-Bstatic", "-lnetcdff", "-Wl,-Bdynamic", "-lnetcdf"]}


@pytest.mark.parametrize("interface", ["77", "90"])
@pytest.mark.parametrize("linking", FORTRAN)
def test_fortran_calls_are_recorded_once(recorder, tmp_path, linking, interface):
    program = fortran(recorder, "netcdf_fortran", "gfortran", ["-I/usr/include"], FORTRAN[linking])
    finished = recorder.execute(program, interface, tmp_path / "a.nc", timeout=600)
    assert (finished.returncode, finished.stderr) == (0, b"")
    expected = [
        (name, *map(int, numbers)) for name, *numbers in map(str.split, finished.stdout.decode().splitlines())
    ]
    run = ensembles.open(recorder.run)
    here = run.select(layer="netcdf")
    assert done(here) == expected
    assert not here.depth.any()
    assert {run.files[number] for number in here.file} == {str(tmp_path / "a.nc")}


def test_program_whose_library_uses_netcdf_is_linked(relinked, tmp_path):
    """The linker applies --wrap to calls of the shared library, but the program does not name NetCDF."""
    library, program = tmp_path / "liblibrary.so", tmp_path / "program"
    source = tmp_path / "program.c"
    source.write_text(
        'int create(const char *), finish(int);\nint main(void) { return finish(create("a.nc")); }\n'
    )
    options = ["-shared", "-fPIC", relinked.source("netcdf_library"), "-o", library, "-lnetcdf"]
    subprocess.run(["gcc", *options], check=True)
    command = [relinked.driver, "gcc", source, "-o", program, library, f"-Wl,-rpath,{tmp_path}"]
    linked = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "undefined" not in linked.stderr
    assert relinked.execute(program, cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.nc").exists()
