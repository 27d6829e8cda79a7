"""MPI programs that end without MPI_Finalize: what is said of their ranks."""

import re
import subprocess
import time

import pytest
from test_mpi import FLAVOURS, compiled

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

WITHOUT = r"(\d) of the 2 ranks that called MPI_Init \(ranks: [01-]+\) ended without MPI_Finalize"
KILLED = r"did not end its recording \(still running, killed, or left by .*\): \d+ \(rank [01]\) on"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_ranks_that_exit_without_finalize_are_named(recorder, flavour):
    program = compiled(recorder, "mpi_ends", f"mpicc.{flavour}")
    command = [f"mpiexec.{flavour}", "-n", "2", program, "exit", "unused"]
    subprocess.run(command, env=recorder.environment(**ANY_TASKS), timeout=600, capture_output=True)
    notes = "\n".join(ensembles.open(recorder.run).notes)
    without, killed = re.search(WITHOUT, notes), re.search(KILLED, notes)
    # MPICH's launcher kills a rank that has not come to its end when the other has left without MPI_Finalize.
    assert without, notes
    assert int(without[1]) + (killed is not None) == 2, notes
    assert flavour == "mpich" or killed is None


@pytest.mark.parametrize("way_out", ["handler", "plain"])
def test_a_run_that_mpiexec_stopped_does_not_look_complete(recorder, way_out):
    program = compiled(recorder, "mpi_ends", "mpicc.openmpi")
    ready = recorder.folder / "ready"
    command = ["mpiexec.openmpi", "-n", "2", program, way_out, ready]
    with subprocess.Popen(
        command, env=recorder.environment(**ANY_TASKS), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        while not ready.exists() and running.poll() is None:
            time.sleep(0.05)
        time.sleep(0.5)
        running.terminate()
    assert running.returncode != 0
    notes = ensembles.open(recorder.run).notes
    # The launcher may kill a rank before its handler has come to the end.
    sayings = ("ended without MPI_Finalize", "did not end (its|their) recording")[way_out == "plain" :]
    assert notes
    assert all(any(re.search(saying, note) for saying in sayings) for note in notes)


@pytest.mark.parametrize("job_file", ["1", "0"])
def test_ranks_that_finalize_are_complete(recorder, job_file):
    program = compiled(recorder, "mpi_writes", "mpicc.openmpi")
    environment = recorder.environment(**ANY_TASKS, ENSIO_JOBFILE=job_file)
    command = ["mpiexec.openmpi", "-n", "2", program]
    subprocess.run(command, env=environment, check=True, timeout=600, cwd=recorder.folder)
    assert ensembles.open(recorder.run).notes == []
