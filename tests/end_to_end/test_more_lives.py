"""Programs whose lives end, or go on, in unusual ways keep their results and their calls."""

import os
import subprocess
from collections import Counter

import pytest
from places import PATIENCE_S

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

FILE = "out"


def written(run) -> Counter:
    """Writes by what follows the dot in the file's name."""
    files = run.select(call="write", file=f"*/{FILE}.*").file.tolist()
    return Counter(run.files[file].rsplit(".", 1)[1] for file in files)


# What each life writes, how it ends, and how many of its processes are said to have ended in order.
LIVES = {
    "become_daemon": ({"before": 2, "daemon": 700, "destructor": 8}, 20),
    "close_everything": ({"early": 3, "late": 5000, "last": 5000, "destructor": 4}, 20),
    "crash": ({"crash": 1500}, -11),
    "abort": ({"abort": 1500}, -6),
    "end_at_once": ({"exit": 1500}, 21),
    "end_in_a_handler": ({"before": 1, "handler": 10}, 22),
    "end_with_handlers": ({"main": 1, "exit-handler": 7, "destructor": 4}, 23),
    "change_folder": ({"absolute": 6001, "destructor": 4}, 20),
}


@pytest.mark.parametrize(
    ("what", "writes", "status"), [(name, *rest) for name, rest in LIVES.items()], ids=LIVES
)
def test_life(recorder, tmp_path, what, writes, status):
    program = recorder.build("more_lives")
    results = []
    for execute, folder in ((recorder.untraced, "alone"), (recorder.execute, "recorded")):
        (tmp_path / folder).mkdir()
        done = execute(program, what, tmp_path / folder / FILE, timeout=PATIENCE_S)
        left = {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        results.append((done.returncode, done.stdout, done.stderr, left))
    assert results[0] == results[1]
    assert results[0][0] == status
    run = ensembles.open(recorder.run)
    assert written(run) == writes
    in_order = status > 0
    assert all(process.ended == in_order for process in run.info.processes)
    assert bool(run.notes) != in_order


def test_run_directory_is_found_again_after_a_change_of_folder(recorder, tmp_path):
    program = recorder.build("more_lives")
    environment = {"ENSIO_DIR": "named"}
    recorder.execute(program, "change_folder", tmp_path / FILE, cwd=tmp_path, environment=environment)
    run = ensembles.open(tmp_path / "named")
    assert written(run) == {"absolute": 6001, "destructor": 4}
    assert run.notes == []


def test_thousands_of_short_lived_threads(recorder, tmp_path):
    program = recorder.build("more_lives")
    done = recorder.execute(program, "many_threads", tmp_path / FILE, timeout=PATIENCE_S)
    assert done.returncode == 20
    # No window of a thread that has ended stays mapped. Whatever the number of threads, there are the head,
    # four windows of the summary and one of scratch, the main thread's, and that of the kernel's counters.
    assert int(done.stdout) <= 8
    run = ensembles.open(recorder.run)
    assert written(run) == {"thread": 3000, "destructor": 4}
    assert run.notes == []
    assert len(set(run.select(call="write", file="*.thread").thread.tolist())) == 3000


@pytest.mark.all_cases
def test_libraries_that_come_and_go(recorder, tmp_path):
    library = tmp_path / "plugin.so"
    source = recorder.source("plugin")
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", source, "-o", library], check=True)
    done = recorder.execute(
        recorder.build("more_lives", "-ldl"), "plugin", tmp_path / FILE, library, timeout=PATIENCE_S
    )
    assert done.returncode == 20
    assert (tmp_path / f"{FILE}.plugin").read_bytes() == b"xyz" * 20
    run = ensembles.open(recorder.run)
    plugin = {"plugin": 20} if recorder.way == "preloaded" else {}  # relinked, a library's calls are its own
    assert written(run) == {"main": 20, "destructor": 4} | plugin
    assert run.notes == []


@pytest.mark.parametrize("what", ["finalised", "profiling", "unfinished", "abort"])
@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_mpi_programs_that_end_otherwise(recorder, tmp_path, flavour, what):
    """MPI_Abort, PMPI_Finalize called by the program itself, and no MPI_Finalize at all."""
    program = recorder.build("mpi_lives", compiler=f"mpicc.{flavour}")
    environment = recorder.environment(
        **ANY_TASKS,
    )
    command = [f"mpiexec.{flavour}", "-n", "3", str(program), what, str(tmp_path)]
    statuses = []
    for more in ({"ENSIO_DISABLE": "1"}, {}):
        done = subprocess.run(
            command, env=environment | more, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S
        )
        statuses.append(done.returncode)
    if what != "unfinished":  # then it depends on whether the launcher notices before the last task has ended
        assert statuses[0] == statuses[1]
        assert (statuses[0] == 0) == (what != "abort")
    run = ensembles.open(recorder.run)
    assert run.tasks == 3
    for rank in range(3):
        mine = run.select(rank=str(rank), call="write", file=f"{tmp_path}/rank.*")
        assert len(mine) == 10 + rank
        assert {os.path.basename(run.files[file]) for file in mine.file} == {f"rank.{rank}"}
