"""A program that is linked with the recorder, and started under the preload library too, is recorded once."""

import functools
import platform
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from places import BUILD, PRELOAD
from test_call_sites import check
from test_calls import names
from test_fortran_sites import test_lines_of_an_optimised_program as check_fortran
from test_hdf5 import done as hdf5_done
from test_hdf5 import flags, said, static
from test_mpi import FLAVOURS, compiled, done, executed

import ensembles

BOTH = {"LD_PRELOAD": str(PRELOAD)}


@pytest.mark.parametrize("options", [["-fPIE", "-pie"], ["-fno-pie", "-no-pie"], ["-flto"]])
def test_each_call_is_recorded_once(relinked, preload, tmp_path, options):
    folders = [tmp_path / name for name in ("both", "preloaded")]
    counts = []
    for recorder, folder in zip((relinked, preload), folders, strict=True):
        folder.mkdir()
        recorder.run = tmp_path / f"run-{folder.name}"
        program = recorder.build("every_call", *options)
        assert recorder.execute(program, folder, environment=BOTH).returncode == 7
        run = ensembles.open(recorder.run)
        assert len({(process.pid, process.start_unix_ns) for process in run.info.processes}) == len(
            run.info.processes
        )
        counts.append((Counter(names(run.events)), len(run.info.processes)))
    assert counts[0] == counts[1]
    assert counts[0][0].total() > 40


@pytest.mark.parametrize("options", [["-O0"], ["-no-pie"]])
def test_lines_are_those_of_the_program_and_not_of_wrappers(relinked, options):
    relinked.settings = BOTH
    check(relinked, relinked.source("site_calls"), relinked.build("site_calls", "-g", *options))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_lines_of_fortran_and_of_what_libraries_do_below(relinked, flavour):
    relinked.settings = BOTH
    check_fortran(relinked, flavour, "mpi")


def test_phases_and_regions_come_to_the_recorder_that_records(relinked):
    program = relinked.build("regions", f"-I{BUILD}/include")
    relinked.execute(program, 1, cwd=relinked.folder, environment=BOTH)
    run = ensembles.open(relinked.run)
    table = run.regions
    assert Counter(table.names[number] for number in table.name) == {
        "setup": 1,
        "work": 1,
        "outer": 3,
        "inner": 6,
        "left open": 1,
    }
    assert len(run.select(region="inner", call="write")) == 6
    assert len(run.info.processes) == 1


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_shared_mpi_is_seen_inside(relinked, flavour):
    program = compiled(relinked, "mpiio_calls", f"mpicc.{flavour}")
    said, run = executed(relinked, flavour, program, **BOTH)
    assert [done(run, rank, "mpiio") for rank in (0, 1)] == said
    inside = run.select(layer="posix", file="*/data/data*")
    assert len(inside) > 0
    assert inside.depth.min() >= 1


def test_an_mpi_that_is_a_part_of_the_program_is_recorded_by_the_program(relinked):
    libraries = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
    options = ["-I", f"/usr/include/{platform.machine()}-linux-gnu/mpich", libraries / "libmpich.a", "-lm"]
    options += [f"-l:lib{name}" for name in ("hwloc.so.15", "ucp.so.0", "ucs.so.0", "uct.so.0")]
    program = compiled(relinked, "mpiio_calls", "gcc", *options)
    said, run = executed(relinked, "mpich", program, **BOTH)
    assert [done(run, rank, "mpiio") for rank in (0, 1)] == said
    inside = run.select(layer="posix", file="*/data/data")
    assert len(inside) > 10
    assert inside.depth.tolist() == [1] * len(inside)


@pytest.mark.parametrize("options", [[], ["-rdynamic"]])
def test_an_hdf5_that_is_a_part_of_the_program_is_recorded_by_the_program(relinked, tmp_path, options):
    program = relinked.build("hdf5_calls", *options, *flags("cflags"), *static())
    execute = functools.partial(relinked.execute, environment=BOTH)
    _, expected = said(execute, program, tmp_path / "traced")
    events = ensembles.open(relinked.run).select(layer="hdf5", file=str(tmp_path / "traced/a.h5"))
    assert hdf5_done(events) == expected


def test_nothing_is_recorded_where_both_are_shut_off(relinked):
    program = relinked.build("every_call")
    folder = relinked.folder / "data"
    folder.mkdir()
    environment = relinked.environment(**BOTH, ENSIO_DISABLE="1")
    assert subprocess.run([program, folder], env=environment, capture_output=True).returncode == 7
    assert not relinked.run.exists()
