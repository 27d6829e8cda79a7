"""The page for administrators, done in a real Slurm: every job is recorded by default, or named."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import BUILD, ROOT
from slurm import NotPossible, Slurm

from ensembles.history.store import History

PAGE = (ROOT / "docs" / "user" / "administrators.md").read_text()
BLOCKS = [re.sub("^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n)+", PAGE, re.M)]
JOBS = int(os.environ.get("SITE_JOBS", "12"))
MOST_BYTES = 64 << 10
WRITES = "srun {folder}/app if=/dev/zero of={folder}/out.$SLURM_JOB_ID bs=4k count=30 status=none"
SCRIPTS = {
    "killed": "srun timeout -s KILL 1 {folder}/app if=/dev/zero of={folder}/out bs=1",
    "full": "ENSIO_DIR={folder}/full/run " + WRITES,
    "static": "srun {folder}/static",
    "unset": WRITES.replace("srun", "srun env -u LD_PRELOAD"),
    "opted out": "ENSIO_DISABLE=1 " + WRITES,
    "of the system": WRITES.replace("{folder}/app", "dd"),
}


def block(word):
    """The block of the page with a word, its places made those of this test."""
    (found,) = (block for block in BLOCKS if word in block)
    return found


def here(text, folder):
    """A text of the page, in which the places are those of the test."""
    return (
        text.replace("/scratch/ensio", f"{folder}/runs")
        .replace("/opt/ensio", str(BUILD))
        .replace("!root:", "")
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with the site's file and scripts, programs, and a file system without room."""
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "static.c", "-o", "static"], cwd=tmp_path, check=True)
    (tmp_path / "app").write_bytes(Path("/bin/dd").read_bytes())
    settings = block("ENSIO_USERS=") + block("always ENSIO_ANONYMISE=").replace("/etc", str(tmp_path))
    (tmp_path / "ensio.conf").write_text(here(settings, tmp_path))
    (tmp_path / "ensio.key").write_text("the secret of the site")
    for name, word in (("task-prolog", "# TaskProlog"), ("prolog", "# Prolog")):
        (tmp_path / name).write_text(here(block(word), tmp_path))
    for name in ("app", "task-prolog", "prolog"):
        (tmp_path / name).chmod(0o755)
    for name in ("full", "runs"):
        (tmp_path / name).mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", tmp_path / "full"]).returncode:
        pytest.skip("no file system can be mounted here")
    yield tmp_path
    subprocess.run(["umount", tmp_path / "full"], check=True)


@pytest.fixture
def slurm(folder):
    try:
        with Slurm(f"Prolog={folder}/prolog\nTaskProlog={folder}/task-prolog\n") as running:
            yield running
    except NotPossible as reason:
        pytest.skip(f"no Slurm can be started here: {reason}")


def environment(folder):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")}
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return clean | {"ENSIO_CONF": str(folder / "ensio.conf"), "PATH": path}


def shell(command, folder):
    done = subprocess.run(
        ["sh", "-ec", here(command, folder)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def submitted(slurm, folder):
    """Run the jobs to their end; what each of them is."""
    jobs = {}
    for number in range(JOBS):
        kind = [*SCRIPTS, "plain"][min(number, len(SCRIPTS))]
        script = folder / "script"
        script.write_text(f"#!/bin/sh\n{SCRIPTS.get(kind, WRITES).format(folder=folder)}\n")
        done = slurm.run("sbatch", "--parsable", "-o", "%j.out", script, env=environment(folder), cwd=folder)
        assert done.returncode == 0, done.stderr
        jobs[done.stdout.strip()] = kind
    while slurm.run("squeue", "--noheader").stdout:
        time.sleep(0.2)
    return jobs


def test_every_job_is_recorded_or_named(slurm, folder):
    jobs = submitted(slurm, folder)
    recorded = {job for job, kind in jobs.items() if kind in ("plain", "killed")}
    (folder / "jobs").write_text("".join(f"{job} root COMPLETED\n" for job in jobs))
    ask, add, list_all = block("ensio history add").splitlines()
    assert ask.startswith("sacct ")  # this Slurm has no database of jobs
    said = shell(add, folder)
    assert said.startswith(f"{len(recorded)} runs added to ")
    missing = said.strip().rsplit(": ")[1].split(", ")
    assert (set(missing), len(missing)) == (set(jobs) - recorded, len(jobs) - len(recorded))
    assert {run.labels["job"] for run in History(f"{folder}/runs/runs.db").runs()} == {
        f"{job}.0" for job in recorded
    }
    runs = {jobs[path.name[4:-2]]: path for path in folder.glob("runs/root/*/*/*/app-*.0")}
    assert ", 1 task" in (listed := shell(list_all, folder))
    assert "app," not in listed
    assert {path.parent for path in folder.glob("runs/**/*.spool")} == {runs["killed"]}
    assert size_of(runs["plain"]) <= MOST_BYTES
    assert size_of(runs["killed"]) <= 4 * MOST_BYTES  # the spool as it was
    (full,) = (job for job, kind in jobs.items() if kind == "full")
    assert "ensio: no I/O is recorded" in (folder / f"{full}.out").read_text()
    assert (folder / "runs/root").stat().st_mode & 0o777 == 0o700
    old, empty = block("-type d -empty").splitlines()
    os.utime(runs["plain"], (0, 0))
    shell(old, folder)
    shell(empty, folder)
    left = {path.name for path in folder.glob("runs/root/*/*/*/*")}
    assert left == {f"app-{job}.0" for job in recorded} - {runs["plain"].name}


def size_of(run):
    """Bytes on disk."""
    return sum(path.stat().st_blocks * 512 for path in run.iterdir())


def test_a_new_file_is_tried_and_a_run_is_passed_on(folder):
    (folder / "ensio.conf.new").write_text("ENSIO_MOD=trace\n")
    (attempt,) = (line for line in PAGE.splitlines() if "ensio.conf.new" in line)
    command = attempt.strip().replace("/etc/", f"{folder}/").replace("./app", "./app if=app of=out 2>&1")
    assert "ensio: no I/O is recorded, because line 1 of " in shell(command, folder)
    shell("ensio run -o run -- ./app if=app of=out", folder)
    for line in block("ensio anonymise").splitlines():
        shell(line.replace("/etc/", f"{folder}/"), folder)


def test_the_recorder_is_installed_and_removed_by_the_lines_of_the_page(folder):
    (line,) = block("cmake --install").splitlines()
    configure, build, install = line.split(" && ")
    shell(configure.replace("-S .", f"-S {ROOT}"), folder)
    shell(f"{build} --target help", folder)  # test_build_again builds
    shell(install.replace("build", str(BUILD)).replace("/opt/ensio", f"{folder}/opt"), folder)
    (remove,) = re.findall(r"`(cmake --build [^`]*)`", PAGE)
    (folder / "build/install_manifest.txt").write_text(f"{folder}/opt/bin/ensio-cc")
    shell(remove, folder)
    assert not (folder / "opt/bin/ensio-cc").exists()
    assert (folder / "opt/lib/libensio-preload.so").exists()
