"""MPI_Pcontrol as IPM defines it, and barriers that are called as PMPI_Barrier."""

import json
import subprocess

import pytest
from places import BUILD, PATIENCE_S, PROGRAMS
from test_mpi import FLAVOURS, compiled

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

PARTS = {
    "S_w": 4,
    "W_r": 1,
    "W_w": 2,
    "C_r": 3,
}  # of MADbench2, with the writes that the program makes in each


def executed(recorder, flavour, name, compiler, **more):
    options = ["-fallow-argument-mismatch"] if compiler != "mpicc" else []
    program = compiled(recorder, name, f"{compiler}.{flavour}", *options)
    return recorder.tasks(flavour, program, **more)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_regions_of_ipm_are_regions_on_request(recorder, flavour):
    run = executed(recorder, flavour, "pcontrol", "mpicc", ENSIO_PCONTROL="ipm")
    assert run.notes == []
    for rank in (0, 1):
        mine = run.regions[run.regions.rank == rank]
        names = [mine.names[number] for number in mine.name[mine.start.argsort()].tolist()]
        assert names == [name for part in PARTS for name in (part, "written")]
    for name, writes in PARTS.items():
        assert len(run.select(call="write", region=name)) == 2 * writes
    told = subprocess.run(
        ["ensio", "info", "--json", recorder.run],
        env=recorder.environment(ENSIO_DISABLE="1", PATH=f"{BUILD}/bin:{path_of_tools()}"),
        capture_output=True,
        check=True,
    )
    regions = {region["name"]: region for region in json.loads(told.stdout)["regions"]}
    assert {
        name: (region["tasks"], region["count"], region["not_ended"]) for name, region in regions.items()
    } == {
        **dict.fromkeys(PARTS, (2, 2, 0)),
        "written": (2, 8, 0),
    }


def path_of_tools():
    import os
    import sys

    return f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"


@pytest.mark.parametrize("setting", ["", "1"])
def test_without_the_request_the_call_means_nothing(recorder, setting):
    more = {"ENSIO_PCONTROL": setting} if setting else {}
    run = executed(recorder, "openmpi", "pcontrol", "mpicc", **more)
    assert len(run.regions) == 0
    assert len(run.select(call="write", file="*/data.*")) == 2 * sum(PARTS.values())


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_barriers_of_both_names_are_recorded_once(recorder, flavour):
    run = executed(recorder, flavour, "pcontrol", "mpicc")
    for rank in ("0", "1"):
        barriers = run.select(call="MPI_Barrier", rank=rank)
        assert len(barriers) == 1 + len(PARTS)
        assert not barriers.depth.any()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_fortran_names_regions_with_a_nul_or_without(recorder, flavour):
    run = executed(recorder, flavour, "pcontrol_fortran", "mpif90", ENSIO_PCONTROL="ipm")
    for rank in (0, 1):
        mine = run.regions[run.regions.rank == rank]
        assert [mine.names[number] for number in mine.name[mine.start.argsort()].tolist()] == [
            "solve",
            "step",
        ]
        assert len(run.select(call="MPI_Barrier", rank=str(rank), region="solve")) == 1
        barriers = run.select(call="MPI_Barrier", rank=str(rank))
        assert len(barriers) == 2  # one is called as PMPI_Barrier
        assert not barriers.depth.any()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_barriers_of_both_names_in_the_newer_fortran_binding(recorder, flavour):
    run = executed(recorder, flavour, "barrier_f08", "mpif90")
    assert [len(run.select(call="MPI_Barrier", rank=rank)) for rank in ("0", "1")] == [3, 3]


OTHER_TOOL = """
#include <stdarg.h>
#include <stdio.h>
int MPI_Pcontrol(int level, ...)
{
    va_list list;
    va_start(list, level);
    const char *name = va_arg(list, const char *);
    if (level == 1 || level == -1)
        fprintf(stderr, "tool: %d %s\\n", level, name > (const char *)4096 ? name : "none");
    va_end(list);
    return 0;
}
"""


def test_the_real_function_is_still_called_with_its_arguments(preload):
    (preload.folder / "tool.c").write_text(OTHER_TOOL)
    tool = preload.folder / "libtool.so"
    subprocess.run(["gcc", "-shared", "-fPIC", preload.folder / "tool.c", "-o", tool], check=True)
    program = preload.folder / "pcontrol"
    subprocess.run(["mpicc.openmpi", "-w", PROGRAMS / "pcontrol.c", "-o", program], check=True)
    environment = preload.environment(**ANY_TASKS, ENSIO_PCONTROL="ipm")
    environment["LD_PRELOAD"] += f":{tool}"
    done = subprocess.run(
        ["mpiexec.openmpi", "-n", "1", program],
        env=environment,
        check=True,
        cwd=preload.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("tool:")] == [
        *(f"tool: {level} {name}" for name in PARTS for level in (1, -1)),
        "tool: 1 none",
        "tool: 1 ",
        "tool: -1 never opened",
    ]
    names = ensembles.open(preload.run).regions.names
    assert {name for name in names if name} == {*PARTS, "written"}
