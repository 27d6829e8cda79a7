"""Recorded runs are made again: the same calls, on new files, of which nothing stays."""

import json
import os
import signal
import subprocess
import sys
import time

import commands_here
import pytest
from places import BUILD, PATIENCE_S

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

BIN = os.path.dirname(sys.executable)
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")},
    **ANY_TASKS,
    "PATH": f"{BUILD}/bin:{BIN}:{os.environ['PATH']}",
    "ENSIO_BANNER": "none",
}

HABITS = """
import os, sys
folder, count = sys.argv[1], 40
os.makedirs(folder)
log = os.path.join(folder, "log")
for i in range(count):
    with open(log, "a") as file:
        file.write("record %d\\n" % i)
data = os.open(os.path.join(folder, "data"), os.O_CREAT | os.O_RDWR | os.O_TRUNC)
for i in range(count):
    os.write(data, b"x" * 100)
    os.fsync(data)
for i in range(20):
    os.write(data, b"y" * 50)
os.lseek(data, 500, os.SEEK_SET)
os.read(data, 1000)
os.close(data)
os.stat(log), os.listdir(folder), os.path.exists(log + ".none")
os.rename(log, log + ".old")
"""

TASKS = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static char data[1 << 16];
int main(int count, char **words)
{
    int rank, tasks;
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    for (int step = 0; step < 2; step++) {
        int shared = open("shared.dat", O_CREAT | O_RDWR, 0666);
        for (int i = 0; i < 4; i++)
            pwrite(shared, data, 1000, ((step * tasks + rank) * 4 + i) * 1000);
        fsync(shared);
        close(shared);
        MPI_Barrier(MPI_COMM_WORLD);
        shared = open("shared.dat", O_RDONLY);
        pread(shared, data, 4000, (step * tasks + (rank + 1) % tasks) * 4000);
        close(shared);
        char name[99];
        snprintf(name, sizeof name, "own.%d", rank);
        FILE *own = fopen(name, step ? "a" : "w");
        for (int i = 0; i < 50; i++)
            fprintf(own, "line %d\n", i);
        fclose(own);
        snprintf(name, sizeof name, "both.%d", rank);
        FILE *both = fopen(name, step ? "r+" : "w+");
        fseek(both, 0, SEEK_SET);
        fwrite(data, 1, 3000, both);
        rewind(both);
        fread(data, 1, 100, both);
        fclose(both);
    }
    MPI_File_open(MPI_COMM_WORLD, "mpiio.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < 3; i++)
        MPI_File_write_at_all(file, (i * tasks + rank) * 5000, data, 5000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, ((rank + 1) % tasks) * 5000, data, 5000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    if (rank == 0) {
        MPI_File_open(MPI_COMM_SELF, "alone.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_write_at(file, 0, data, 777, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    MPI_Finalize();
    return 0;
}
"""


def ensio(folder, *words, status=0):
    """Output of a command that ends with a status, any if it is None."""
    command, how = ["ensio", *map(str, words)], {"capture_output": True, "text": True, "timeout": PATIENCE_S}
    done = commands_here.run(command, cwd=folder, env=ENVIRONMENT, **how)
    if status is not None:
        assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 or status is None else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the record of a program without MPI, ``habits``, and of one with it, ``tasks``."""
    found = tmp_path_factory.mktemp("recorded")
    (found / "habits.py").write_text(HABITS)
    ensio(found, "run", "-o", "habits", "--", sys.executable, "habits.py", found / "made")
    (found / "tasks.c").write_text(TASKS)
    subprocess.run(["mpicc", "-w", "-o", "tasks-program", "tasks.c"], cwd=found, check=True)
    ensio(found, "run", "-o", "tasks", "--", "mpiexec", "-n", "3", "./tasks-program")
    return found


@pytest.mark.parametrize("think_time", ["keep", "none"])
@pytest.mark.parametrize("name", ["habits", "tasks"])
def test_a_run_made_again_has_the_same_calls_and_leaves_nothing(folder, tmp_path, name, think_time):
    run = tmp_path / "again"
    made = json.loads(
        ensio(tmp_path, "replay", folder / name, "-o", run, "--think-time", think_time, "--json")
    )
    assert ensio(tmp_path, "fingerprint", folder / name, "--against", run).startswith("Equal")
    assert made["notes"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["again"]


def test_names_with_parent_folders_are_those_of_the_same_files(tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "source").write_bytes(bytes(100))
    text = "open('../source').read(); open('../made', 'w').write('x' * 9); open('../below/../made').read()"
    ensio(below, "run", "-o", "../run", "--", sys.executable, "-c", text)
    ensio(tmp_path, "replay", "run", "-o", "again", "--directory", "target", "--keep")
    (made,), (source,) = ([*(tmp_path / "target").rglob(name)] for name in ("made", "source"))
    assert (made.stat().st_size, source.stat().st_size) == (9, 100)


def test_files_keep_their_names_and_lengths(folder, tmp_path):
    target = tmp_path / "target"
    ensio(tmp_path, "replay", folder / "tasks", "-o", "again", "--directory", target, "--keep")
    made = {path.name: path.stat().st_size for path in target.rglob("*") if path.is_file()}
    files = ("shared.dat", "own.0", "own.1", "own.2", "mpiio.dat", "alone.dat", "both.0", "both.1", "both.2")
    assert made == {name: (folder / name).stat().st_size for name in files}


@pytest.mark.parametrize(
    ("remedy", "calls"),
    [
        ("sync=end", {"fsync": 1, "write": 100}),
        ("keep-open", {"open": 2, "close": 2}),
        ("join=1KiB", {"write": 81}),
        ("split=2", {"write": 200}),
    ],
)
def test_a_remedy_changes_calls_and_no_contents(folder, tmp_path, remedy, calls):
    words = ("try", folder / "habits", "--with", remedy, "--time", 180, "-o", "kept", "--json")
    found = json.loads(ensio(tmp_path, *words, status=None))
    if found["refused"]:  # times depend on what else runs here
        ensio(tmp_path, "replay", folder / "habits", "--with", remedy, "-o", tmp_path / "kept" / "with-1")
    else:
        assert found["same_contents"] is True
        assert len(found["pairs_s"]) >= 5
    made = ensembles.open(tmp_path / "kept" / "with-1").select(file=["*/made/log", "*/made/data"])
    names = [made.calls[call].name for call in made.call]
    assert {name: names.count(name) for name in calls} == calls


def test_a_trial_that_does_not_fit_into_its_time_is_refused_after_one_replay(folder, tmp_path):
    words = ("try", folder / "tasks", "--with", "none", "--time", 1, "-o", "kept")
    assert "--time" in ensio(tmp_path, *words, status=2)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["without-1"]


def test_findings_name_the_trial(folder):
    found = json.loads(ensio(folder, "diagnose", "habits", "--json"))["findings"]
    named = {each["id"]: each.get("try") for each in found}
    assert named.get("sync-per-write", "sync=end") == "sync=end"
    assert "sync-per-write" in named


def test_a_replay_that_is_ended_removes_its_files(tmp_path):
    program = "import os, time\nfor i in range(100):\n    open('f%d' % i, 'w').close()\n    time.sleep(0.2)\n"
    (tmp_path / "slow.py").write_text(program)
    (tmp_path / "here").mkdir()
    # Killed itself, the program leaves a record of what it did, with its pauses.
    line = f"cd {tmp_path}/here && timeout 3 {sys.executable} ../slow.py; true"
    ensio(tmp_path, "run", "-o", "slow", "--", "sh", "-c", line)
    command = [sys.executable, "-m", "ensembles.cli.main", "replay", "./slow", "-o", "again"]
    started = subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    while (
        not any(path.is_file() for path in tmp_path.glob(".ensio-replay-*/**/f*")) and started.poll() is None
    ):
        time.sleep(0.05)
    started.send_signal(signal.SIGTERM)
    assert started.wait(60) != 0
    assert list(tmp_path.glob(".ensio-replay-*")) == []


class TestRefusals:
    def refused(self, folder, *words):
        before = sorted(folder.rglob("*"))
        told = ensio(folder, *words, status=2)
        assert sorted(folder.rglob("*")) == before
        return [line for line in told.splitlines() if not line.startswith("ensio: note")][-1]

    def test_a_folder_that_is_not_empty(self, folder, tmp_path):
        (tmp_path / "file").touch()
        told = self.refused(tmp_path, "replay", folder / "habits", "--directory", tmp_path)
        assert told.endswith("is not empty: a replay writes to an empty folder only")

    def test_a_record_of_sums(self, folder, tmp_path):
        ensio(
            folder,
            "run",
            "--mode",
            "profile",
            "-o",
            tmp_path / "sums",
            "--",
            sys.executable,
            "habits.py",
            tmp_path / "made",
        )
        assert "a replay makes every call again" in self.refused(tmp_path, "replay", tmp_path / "sums")

    def test_more_tasks_than_the_launcher_gives(self, folder, tmp_path):
        told = self.refused(tmp_path, "replay", folder / "tasks", "--launcher", "no-such-launcher")
        assert "no-such-launcher" in told

    def test_names_that_lead_out_of_the_folder(self, tmp_path):
        log = '1700000000.000000 openat(AT_FDCWD, "/data/../../etc/x", O_WRONLY|O_CREAT) = 3 <0.000010>\n'
        log += '1700000000.000100 write(3, "x", 1) = 1 <0.000010>\n'
        (tmp_path / "log.strace").write_text(log)
        told = ensio(tmp_path, "replay", tmp_path / "log.strace", "-o", "again", status=None)
        assert not (tmp_path / "etc").exists()
        assert all(".." not in str(path) for path in tmp_path.rglob("*")), told

    def test_a_remedy_that_does_not_exist(self, folder, tmp_path):
        assert 'there is no remedy "faster"' in self.refused(
            tmp_path, "try", folder / "habits", "--with", "faster"
        )

    def test_a_remedy_without_effect(self, folder, tmp_path):
        told = self.refused(tmp_path, "try", folder / "tasks", "--with", "join=1")
        assert told.endswith("join=1 changes no call of this run")
