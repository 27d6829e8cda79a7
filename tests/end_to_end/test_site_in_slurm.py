"""A site records every job of a real Slurm by default, and one command lists them with what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import BUILD
from slurm import NotPossible, Slurm

from ensembles.history.store import History

ENSIO = Path(sys.executable).with_name("ensio")
JOBS = int(os.environ.get("SITE_JOBS", "12"))
MOST_BYTES = 64 << 10
WRITES = "srun dd if=/dev/zero of={folder}/out.$SLURM_JOB_ID bs=4k count=30 status=none"
SCRIPTS = {
    "killed": "srun timeout -s KILL 1 dd if=/dev/zero of={folder}/out bs=1",
    "full": "ENSIO_DIR={folder}/full/run srun dd if=/dev/zero of={folder}/out bs=1 count=1000",
    "static": "srun {folder}/static",
    "unset": "unset LD_PRELOAD; " + WRITES,
    "opted out": "ENSIO_DISABLE=1 " + WRITES,
}


@pytest.fixture(scope="module")
def slurm():
    try:
        with Slurm() as running:
            yield running
    except NotPossible as reason:
        pytest.skip(f"no Slurm can be started here: {reason}")


@pytest.fixture
def folder(tmp_path):
    """A folder with the site's file, a static program, and a file system without room."""
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "static.c", "-o", "static"], cwd=tmp_path, check=True)
    (tmp_path / "full").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", tmp_path / "full"])
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    (tmp_path / "ensio.conf").write_text(f"ENSIO_MODE=profile\nENSIO_DIR={tmp_path}/runs/%u/%Y/%m/%d/%p-%j\n")
    yield tmp_path
    subprocess.run(["umount", tmp_path / "full"], check=True)


def test_every_job_is_recorded_or_named(slurm, folder):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    environment |= {"ENSIO_CONF": str(folder / "ensio.conf")}
    jobs = {}
    for number in range(JOBS):
        kind = ([*SCRIPTS, "plain"])[min(number, len(SCRIPTS))]
        script = folder / f"script-{kind}"
        preload = f"export LD_PRELOAD={BUILD}/lib/libensio-preload.so"
        script.write_text(f"#!/bin/sh\n{preload}\n{SCRIPTS.get(kind, WRITES).format(folder=folder)}\n")
        wait = ("--wait",) if number == JOBS - 1 else ()
        done = slurm.run("sbatch", "--parsable", *wait, "-o", "%j.out", script, env=environment, cwd=folder)
        assert done.returncode == 0, done.stderr
        jobs[done.stdout.strip()] = kind
    slurm.wait_for(lambda: not slurm.run("squeue", "--noheader").stdout)
    (folder / "jobs").write_text("".join(f"{job} COMPLETED\n" for job in jobs))
    words = ["history", "add", "runs", "--jobs", "jobs", "--db", "runs.db"]
    done = subprocess.run([ENSIO, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    missing = {job for job, kind in jobs.items() if kind not in ("plain", "killed")}
    assert f"{len(missing)} jobs not recorded: " in done.stdout
    assert set(done.stdout.strip().rsplit(": ")[1].split(", ")) == missing
    recorded = History(str(folder / "runs.db")).runs()
    assert {run.labels["job"].partition(".")[0] for run in recorded} == set(jobs) - missing, done.stderr
    sizes = {jobs[path.name[3:-2]]: size_of(path) for path in folder.glob("runs/*/*/*/*/dd-*.0")}
    assert sizes["plain"] <= MOST_BYTES
    assert sizes["killed"] <= 4 * MOST_BYTES  # its spool is as it was
    (full,) = (job for job, kind in jobs.items() if kind == "full")
    assert "no I/O is recorded" in (folder / f"{full}.out").read_text()


def size_of(run):
    """Bytes on disk."""
    return sum(path.stat().st_blocks * 512 for path in run.iterdir())
