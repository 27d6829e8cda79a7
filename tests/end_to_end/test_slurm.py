"""Tasks that a real Slurm starts are recorded together, with their ranks and the number of their job."""

import commands_here
import pytest
from slurm import NotPossible, Slurm

import ensembles

# Each task writes as many bytes as its rank and 10 say, one at a time.
TASK = 'dd if=/dev/zero of="rank.$SLURM_PROCID" bs=1 count=$((10 + SLURM_PROCID)) status=none'


@pytest.fixture(scope="module")
def slurm():
    try:
        with Slurm() as running:
            yield running
    except NotPossible as reason:
        pytest.skip(f"no Slurm can be started here: {reason}")


def environment_of(recorder, slurm):
    """Without a named run directory: the tasks have to agree on one."""
    environment = recorder.environment(
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1"
    )
    del environment["ENSIO_DIR"]
    return environment


def assert_ranks_are_right(folder, job, step, name):
    info = commands_here.told("info", folder)
    assert info["tasks"] == 4
    run = ensembles.open(folder)
    assert run.notes == []
    assert sorted(process.rank for process in run.info.processes) == [0, 1, 2, 3]
    assert run.info.job == info["job"] == f"{job}.{step}"
    assert folder.name.startswith(f"ensio-{name}-{job}.{step}-")
    for rank in range(4):
        mine = run.select(rank=str(rank), call="write")
        assert len(mine) == 10 + rank
        assert {run.files[file].rsplit("/")[-1] for file in mine.file} == {f"rank.{rank}"}


def test_relinked_mpi_program(relinked, slurm, tmp_path):
    program = relinked.build("mpi_writes", compiler="mpicc.mpich")
    environment = environment_of(relinked, slurm)
    script = f"srun --mpi=pmi2 -n 4 {program} && echo $SLURM_JOB_ID"
    done = slurm.run("salloc", "-Q", "-n", "4", "sh", "-c", script, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("ensio-*")
    assert_ranks_are_right(folder, done.stdout.strip(), 0, program.name)


def test_preloaded_program_without_mpi(preload, slurm, tmp_path):
    environment = environment_of(preload, slurm)
    task = ["srun", "-n", "4", "sh", "-c", f"echo $SLURM_JOB_ID >&2; {TASK}"]
    done = slurm.run(*task, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (job,) = set(done.stderr.split())
    (folder,) = tmp_path.glob("ensio-*")
    assert_ranks_are_right(folder, job, 0, "dd")


def test_each_step_of_a_job_has_a_run_directory(preload, slurm, tmp_path):
    environment = environment_of(preload, slurm)
    (tmp_path / "task").write_text(TASK)
    script = "srun -n 4 sh task; srun -n 4 sh task; echo $SLURM_JOB_ID"
    done = slurm.run("salloc", "-Q", "-n", "4", "sh", "-c", script, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folders = sorted(tmp_path.glob("ensio-*"))
    assert len(folders) == 2
    for step, folder in enumerate(folders):
        assert_ranks_are_right(folder, done.stdout.strip(), step, "dd")


def test_batch_script_itself_is_no_task(preload, slurm, tmp_path):
    environment = environment_of(preload, slurm)
    script = tmp_path / "script"
    alone = "dd if=/dev/zero of=alone bs=1 count=5 status=none"
    script.write_text(f"#!/bin/sh\n{alone}\nsrun -n 4 sh -c '{TASK}'\n")
    done = slurm.run("sbatch", "--wait", "--parsable", "-n", "4", script, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    folders = list(tmp_path.glob("ensio-dd-*"))
    (step,) = (folder for folder in folders if f"-{job}.0-" in folder.name)
    assert_ranks_are_right(step, job, 0, "dd")
    (alone,) = (folder for folder in folders if folder != step)
    run = ensembles.open(alone)
    assert (run.tasks, run.info.job) == (1, job)
    assert len(run.select(call="write")) == 5
