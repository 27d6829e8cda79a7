"""Phases and regions: named in C, C++, Fortran and Python, kept by every way in."""

import json
import os
import subprocess
from collections import Counter

import numpy as np
import pytest
from places import BUILD, ENSIO_CC, PRELOAD, PROGRAMS

import ensembles
from ensembles.cli.main import main
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.run.collect import collect

INCLUDE = f"-I{BUILD}/include"
LINKED = {
    "position-independent": ["-fPIE", "-pie"],
    "position-dependent": ["-fno-pie", "-no-pie"],
    "link-time optimisation": ["-flto", "-O2"],
    "no PLT": ["-fno-plt", "-O2"],
    "static": ["-static"],
    "static-pie": ["-static-pie"],
}
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def run(program, folder, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    done = subprocess.run(
        [str(word) for word in program], cwd=folder, env=clean | environment, capture_output=True
    )
    assert done.stderr == b""
    return done


def occurrences(recorded, kind="region"):
    table = recorded.regions
    chosen = table[table.kind == ("phase", "region").index(kind)]
    return Counter(chosen.names[number] for number in chosen.name)


@pytest.mark.parametrize("options", LINKED.values(), ids=LINKED.keys())
def test_regions_of_c_are_kept_however_the_program_is_linked(tmp_path, options):
    build = [*STRICT, *options, INCLUDE, PROGRAMS / "regions.c", "-pthread", "-o"]
    subprocess.run(["gcc", *build, tmp_path / "plain"], check=True)
    subprocess.run([ENSIO_CC, "gcc", *build, tmp_path / "linked"], check=True)
    assert run([tmp_path / "plain", 1], tmp_path).returncode == 0
    ways = {"linked": {}}
    if not any(option.startswith("-static") for option in options):
        ways["plain"] = {"LD_PRELOAD": str(PRELOAD)}
    for program, environment in ways.items():
        assert (
            run([tmp_path / program, 1], tmp_path, ENSIO_DIR=f"run-{program}", **environment).returncode == 0
        )
        recorded = ensembles.open(tmp_path / f"run-{program}")
        assert occurrences(recorded) == {"outer": 3, "inner": 6, "left open": 1}
        assert occurrences(recorded, "phase") == {"setup": 1, "work": 1}
        assert recorded.notes == []


def test_times_are_those_that_the_program_measures_itself(recorder):
    program = recorder.build("regions", INCLUDE)
    setup_ns, outer_ns, all_ns = map(int, recorder.execute(program, 1, cwd=recorder.folder).stdout.split())
    table = ensembles.open(recorder.run).regions
    outer, phases = table.named("outer"), table.named("setup", "work", kind="phase")
    assert 12e6 < outer.duration.sum() <= outer_ns
    assert outer_ns < 1.5 * outer.duration.sum()
    assert 5e6 < phases.duration[0] <= setup_ns < 1.5 * phases.duration[0] + 1e6
    assert phases.start[1] == phases.start[0] + phases.duration[0]
    # A last phase lasts until the recorder's end, which comes after the program's own measurement.
    assert phases.duration.sum() >= 0.9 * all_ns - 1e6
    inner = table.named("inner")
    spans = outer.spans()
    assert spans.hold(inner.rank, inner.start).all()
    assert inner.duration.sum() <= outer.duration.sum()
    assert table.ended.tolist() == [name != "left open" for name in (table.names[n] for n in table.name)]


def test_regions_are_no_input_or_output(recorder):
    program = recorder.build("regions", INCLUDE)
    recorder.execute(program, 3, cwd=recorder.folder)
    recorded = ensembles.open(recorder.run)
    counts = Counter(recorded.calls[call].name for call in recorded.events.call)
    # The program's own count. Nothing else is recorded but what prints its one line.
    assert counts["write"] == 3 * 6 + 1
    assert set(counts) <= {"open", "write", "printf", "fflush", "fstat"}
    assert not {call.layer for call in recorded.calls} & {"program"}
    # Calls within regions keep their depth: their bytes count.
    writes = recorded.select(call="write")
    assert not writes.depth.any()
    assert writes.moved.sum() == 3 * 6 * 4 + 1


def test_threads_have_regions_of_their_own(recorder):
    program = recorder.build("regions", INCLUDE)
    recorder.execute(program, 3, cwd=recorder.folder)
    table = ensembles.open(recorder.run).regions
    assert Counter(table.named("inner").thread.tolist()) == {0: 6, 1: 6, 2: 6}
    assert table.named("inner").ended.all()


def test_filter_chooses_the_calls_of_a_region(recorder, capsys):
    program = recorder.build("regions", INCLUDE)
    recorder.execute(program, 1, cwd=recorder.folder)
    path = str(recorder.run)
    recorded = ensembles.open(path)
    assert len(recorded.select(region="inner", call="write")) == 6
    assert len(recorded.select(region=["inner", "left open"], call="write")) == 7
    assert recorded.select(region="setup", op="open").files[1].endswith("regions.out")
    assert len(recorded.select(region="setup", op="write")) == 0
    assert main(["events", path, "--where", "region=inner", "--call", "write", "--format", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert main(["events", path, "--where", "region=nowhere"]) == 2
    assert "the run has inner, left open, outer, setup, work" in capsys.readouterr().err


def test_info_tells_time_and_io_of_each(recorder, capsys):
    program = recorder.build("regions", INCLUDE)
    recorder.execute(program, 2, cwd=recorder.folder)
    assert main(["info", str(recorder.run), "--json"]) == 0
    regions = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["regions"]}
    assert list(regions) == ["setup", "work", "outer", "inner", "left open"]
    assert regions["inner"]["count"] == 12
    assert regions["inner"]["not_ended"] == 0
    assert regions["left open"]["not_ended"] == 1
    assert 24e-3 < regions["inner"]["time_s"] <= regions["outer"]["time_s"]
    writes = ensembles.open(recorder.run).select(region="inner", call="write")
    assert regions["inner"]["io_time_s"] == pytest.approx(writes.duration.sum() * 1e-9)
    assert main(["info", str(recorder.run)]) == 0
    assert "region inner" in capsys.readouterr().out


def test_trace_file_has_the_same_regions(recorder):
    program = recorder.build("regions", INCLUDE)
    recorder.execute(program, 2, cwd=recorder.folder)
    spools = ensembles.open(recorder.run)
    collect(str(recorder.run))
    stored = ensembles.open(recorder.run / "trace.h5")
    assert stored.regions.names == spools.regions.names
    for name, column in spools.regions.columns.items():
        assert np.array_equal(stored.regions.columns[name], column)
    assert len(stored.regions) == 2 * 9 + 3


def test_regions_of_a_killed_program_are_not_ended(recorder):
    program = recorder.build("regions", INCLUDE)
    command, environment = [program, "1", "wait"], recorder.environment()
    with subprocess.Popen(command, cwd=recorder.folder, env=environment, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.kill()
    table = ensembles.open(recorder.run).regions
    assert table.named("inner", "outer").ended.all()
    assert len(table.named("inner")) == 6
    assert not table.named("left open").ended.any()
    assert not table.named("work").ended.any()
    assert table.named("setup").ended.all()


def test_regions_of_shared_libraries_are_kept(recorder, tmp_path):
    (tmp_path / "lib.c").write_text(
        '#include <ensio/ensio.h>\nvoid part(void) { ensio_region_begin("in a library"); '
        'ensio_region_end("in a library"); }\n'
    )
    (tmp_path / "main.c").write_text("void part(void);\nint main(void) { part(); return 0; }\n")
    library = tmp_path / "libpart.so"
    subprocess.run(["gcc", "-shared", "-fPIC", INCLUDE, tmp_path / "lib.c", "-o", library], check=True)
    driver = [ENSIO_CC] if recorder.way == "relinked" else []
    link = ["gcc", tmp_path / "main.c", library, f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "main"]
    subprocess.run([*driver, *link], check=True)
    assert recorder.execute(tmp_path / "main").returncode == 0
    assert occurrences(ensembles.open(recorder.run)) == {"in a library": 1}


@pytest.mark.parametrize(("layer", "writes"), [("posix", 6 + 1), ("stdio", 0)])
def test_regions_are_kept_whatever_layers_are_wanted(recorder, layer, writes):
    program = recorder.build("regions", INCLUDE)
    done = recorder.execute(program, 1, cwd=recorder.folder, environment={"ENSIO_LAYERS": layer})
    assert (done.returncode, done.stderr) == (0, b"")
    recorded = ensembles.open(recorder.run)
    assert occurrences(recorded) == {"outer": 3, "inner": 6, "left open": 1}
    assert occurrences(recorded, "phase") == {"setup": 1, "work": 1}
    assert len(recorded.select(layer="posix", call="write")) == writes


def test_what_the_program_says_is_no_layer_to_choose(recorder, capfd):
    program = recorder.build("regions", INCLUDE)
    done = recorder.execute(program, 1, cwd=recorder.folder, environment={"ENSIO_LAYERS": "posix,program"})
    assert done.stderr.startswith(b'ensio: ENSIO_LAYERS names "program", which is not a layer')
    listed = done.stderr.partition(b"(the layers are ")[2]
    assert listed == b"posix, stdio, mpiio, mpisync, hdf5, netcdf, pnetcdf and mpimsg).\n"
    assert len(ensembles.open(recorder.run).select(layer="posix", call="write")) == 6 + 1
    assert occurrences(ensembles.open(recorder.run)) == {"outer": 3, "inner": 6, "left open": 1}
    # The command refuses it too, and tells the same layers.
    assert main(["run", "--layers", "posix,program", "--", str(program), "1"]) == 2
    refused = capfd.readouterr().err
    assert 'there is no layer "program"' in refused
    assert "posix, stdio, mpiio, mpisync, hdf5, netcdf, pnetcdf" in refused


TASKS = """
#include <ensio/ensio.h>
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    int rank, fd = open("shared", O_CREAT | O_WRONLY, 0600), failed = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ensio_phase("write");
    for (int i = 0; i < 5; i++) {
        if (rank == 1)
            ensio_region_begin("only in task 1");
        failed |= pwrite(fd, &i, 4, 4 * i) != 4;
        if (rank == 1)
            ensio_region_end("only in task 1");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return failed;
}
"""


def test_regions_belong_to_their_task(recorder, tmp_path):
    (tmp_path / "tasks.c").write_text(TASKS)
    driver = [ENSIO_CC] if recorder.way == "relinked" else []
    build = [*driver, "mpicc", INCLUDE, tmp_path / "tasks.c", "-o", tmp_path / "tasks"]
    subprocess.run(build, check=True, env=os.environ | {"ENSIO_CC_QUIET": "1"})
    done = recorder.execute("mpiexec", "-n", 3, tmp_path / "tasks", cwd=tmp_path, environment=ANY_TASKS)
    assert done.returncode == 0, done.stderr
    recorded = ensembles.open(recorder.run)
    chosen = recorded.select(region="only in task 1", call="pwrite", file="*/shared")
    assert chosen.rank.tolist() == [1] * 5
    assert sorted(chosen.offset.tolist()) == [0, 4, 8, 12, 16]
    phases = recorded.select(region="write", call="pwrite", file="*/shared")
    assert sorted(phases.rank.tolist()) == [0] * 5 + [1] * 5 + [2] * 5
    assert recorded.regions.named("write").rank.tolist() == [0, 1, 2]
