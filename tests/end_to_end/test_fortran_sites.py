"""The calls of an optimised Fortran program have its source lines, whichever library makes them."""

import re
import subprocess
from collections import Counter

import pytest
from places import ENSIO_CC, PROGRAMS
from test_hdf5 import flags

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

SOURCE = PROGRAMS / "site_fortran.F90"
MARK = re.compile(r"! (posix|mpiio|hdf5): (\d+) (\w+)")


def marked(*layers: str) -> dict[tuple[str, str], Counter]:
    """The calls of each marked line of the program, by layer and ``file:line``."""
    found = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if mark := MARK.search(line):
            layer, count, name = mark.groups()
            if layer in layers:
                found[layer, f"{SOURCE.name}:{number}"] = Counter({name: int(count)})
    return found


def calls_at(run, layer: str, place: str) -> Counter:
    """The calls of a line in a layer: the outermost ones, and of POSIX those that move data."""
    events = run.select(layer=layer, site=place)
    names = (run.calls[number].name.removesuffix("64") for number in events.call[events.depth == 0].tolist())
    return Counter(name for name in names if layer != "posix" or name in ("read", "write"))


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_lines_of_an_optimised_program(recorder, flavour, module):
    package = f"hdf5-{flavour}"
    options = [*flags("cflags", package), "-lhdf5_fortran", *flags("libs", package)]
    program = recorder.folder / "program"
    driver = [ENSIO_CC] if recorder.way == "relinked" else []
    command = [*driver, f"mpifort.{flavour}", "-O2", "-g", SOURCE, "-o", program, *options]
    command += ["-DF08"] if module == "mpi_f08" else []
    subprocess.run(command, check=True, cwd=recorder.folder)  # gfortran writes modules there
    data = recorder.folder / "data"
    data.mkdir()
    done = recorder.execute(program, data, environment=ANY_TASKS)
    assert done.returncode == 0, done.stderr
    run = ensembles.open(recorder.run)
    # A relinked program has no calls of shared libraries: of gfortran, and of HDF5's Fortran interface.
    layers = ["posix", "mpiio", "hdf5"] if "LD_PRELOAD" in recorder.environment() else ["mpiio"]
    expected = marked(*layers)
    assert len(expected) >= 4 * len(layers) - 2
    assert {key: calls_at(run, *key) for key in expected} == expected
    of_data = run.select(file=f"{data}/*")
    sites = [run.info.sites[number] for number in set(of_data.site.tolist())]
    assert of_data.site.all()
    assert {site.frames[0].state for site in sites} == {"line"}
    assert {site.frames[0].file.rpartition("/")[2] for site in sites} == {SOURCE.name}
    functions = {site.frames[0].function.rpartition("::")[2] for site in sites}
    assert "parallel_output" in functions
    if recorder.way == "preloaded":
        assert {"text_output", "hdf5_output", "dataset"} <= functions
        # gfortran 12 gives a call without its optional arguments the line of the subroutine.
        assert calls_at(run, "hdf5", "fields::dataset")["H5Dcreate"] == 2
