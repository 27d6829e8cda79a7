"""ENSIO_CHILDREN: which of the programs that a recorded one starts are recorded."""

import os
import subprocess
import sys

import pytest
from places import BUILD

import ensembles
from ensembles.answers.info import answer_run_list
from ensembles.cli.replay_program import ANY_TASKS

DD = "dd if=/dev/zero of=data bs=1k count=3 status=none"

SHELL = f"import os; os.system({DD!r})"

STARTS = {
    "system": SHELL,
    "subprocess": f"import subprocess; subprocess.run({DD.split()!r})",
    "spawn": f"import os; os.waitpid(os.posix_spawn('/bin/dd', {DD.split()!r}, os.environ), 0)",
    "popen": f"import os; os.popen({DD!r}).read()",
    "fork and exec": f"import os; child = os.fork(); child or os.execvp('dd', {DD.split()!r}); os.wait()",
    "grandchild": f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHELL!r}])",
}


def programs(run):
    """Base names of the recorded programs that made calls, forks of the same program counted once."""
    return sorted(
        {
            os.path.basename(process.program)
            for process in ensembles.open(run).info.processes
            if process.threads
        }
    )


def python_name():
    return os.path.basename(os.path.realpath(sys.executable))


OPEN = "import os; os.close(os.open('own', os.O_CREAT | os.O_WRONLY)); "


@pytest.mark.parametrize("way", STARTS.values(), ids=STARTS.keys())
@pytest.mark.parametrize("wanted", ["", "all", "none", "no*,d?", "cp,mv"])
def test_started_programs_are_recorded_as_asked(preload, tmp_path, way, wanted):
    more = {"ENSIO_CHILDREN": wanted} if wanted else {}
    done = preload.execute(sys.executable, "-c", OPEN + way, cwd=tmp_path, environment=more)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "data").stat().st_size == 3072
    with_dd = wanted in ("", "all", "no*,d?")
    assert programs(preload.run) == sorted(["dd"] * with_dd + [python_name()])
    if with_dd:
        assert len(ensembles.open(preload.run).select(call="write", file="*/data")) == 3


def test_a_fork_is_the_program_itself(preload, tmp_path):
    fork = "if os.fork() == 0: os.write(os.open('child', 0o101), b'x'); os._exit(0)\nos.wait()"
    done = preload.execute(
        sys.executable, "-c", OPEN + "\n" + fork, cwd=tmp_path, environment={"ENSIO_CHILDREN": "none"}
    )
    assert done.returncode == 0, done.stderr
    assert len(ensembles.open(preload.run).select(call="write", file="*/child")) == 1


def test_exec_without_fork_goes_on_as_the_task(preload, tmp_path):
    program = OPEN + f"os.execvp('dd', {DD.split()!r})"
    environment = {"ENSIO_CHILDREN": "none"}
    assert (
        preload.execute(sys.executable, "-c", program, cwd=tmp_path, environment=environment).returncode == 0
    )
    assert programs(preload.run) == sorted(["dd", python_name()])


def test_programs_of_a_script_are_nobodys_children(preload, tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\n{DD}\ncp data copy\n({DD}) &\nwait\n")
    script.chmod(0o755)
    more = {"ENSIO_CHILDREN": "none", "ENSIO_LAUNCH": "script"}
    done = preload.execute(script, cwd=tmp_path, environment=more)
    assert (done.returncode, done.stderr) == (0, b"")
    assert programs(preload.run) == ["cp", "dd"]


@pytest.mark.parametrize(
    ("wanted", "recorded"), [("all", ["cp", "dd", "make"]), ("none", ["make"]), ("cp", ["cp", "make"])]
)
def test_recipes_of_make_are_its_children(preload, tmp_path, wanted, recorded):
    (tmp_path / "Makefile").write_text(f"copy: data\n\t@cp data copy\ndata:\n\t@{DD}\n")
    done = preload.execute("make", "-s", cwd=tmp_path, environment={"ENSIO_CHILDREN": wanted})
    assert (done.returncode, done.stderr) == (0, b"")
    assert programs(preload.run) == recorded


def test_tasks_of_mpiexec_are_nobodys_children(relinked, tmp_path):
    program = relinked.build("mpi_writes", compiler="mpicc")
    mpi = {
        **ANY_TASKS,
        "ENSIO_CHILDREN": "none",
        "PATH": f"{BUILD}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
    }
    done = relinked.execute("mpiexec", "-n", 3, program, cwd=tmp_path, environment=mpi)
    assert done.returncode == 0, done.stderr
    assert ensembles.open(relinked.run).tasks == 3
    assert len(ensembles.open(relinked.run).select(call="write")) == 33
    done = subprocess.run(
        [
            "ensio",
            "run",
            "-o",
            "preloaded",
            "mpiexec",
            "-n",
            "2",
            "dd",
            "if=/dev/zero",
            "of=data",
            "count=4",
            "status=none",
        ],
        cwd=tmp_path,
        env=os.environ | mpi,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    recorded = ensembles.open(tmp_path / "preloaded")
    assert recorded.tasks == 2
    assert len(recorded.select(call="write", file="*/data")) == 8


def test_a_script_is_named_by_its_command(tmp_path):
    """As `rm -f one.db`, its first process, it was called."""
    script = "rm -f b; echo text | cat > a; sort a > b"
    environment = os.environ | {"PATH": f"{BUILD}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    command = ["ensio", "run", "-o", "run", "--", "bash", "-c", script, "one"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    info = ensembles.open(tmp_path / "run").info
    assert info.command == ("bash", "-c", script, "one")
    assert {os.path.basename(program) for program in info.programs} >= {"cat", "sort"}
    shown = subprocess.run(
        ["ensio", "info", "run"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert f"command    bash -c '{script}' one" in shown.stdout
    listed = str(answer_run_list(".", [str(tmp_path / "run")], ensembles.open))
    assert "  bash -c 'rm -f b; echo text | " in listed
    assert (info.program, info.name[:16]) == ("bash", "bash -c 'rm -f b")


def test_the_environment_of_started_programs_is_what_the_program_gave_them(preload, tmp_path):
    done = preload.execute("env", cwd=tmp_path, environment={"ENSIO_CHILDREN": "none"})
    inner = preload.execute(
        sys.executable,
        "-c",
        "import subprocess; subprocess.run(['env'])",
        cwd=tmp_path,
        environment={"ENSIO_CHILDREN": "none"},
    )
    without = [line for line in inner.stdout.splitlines() if not line.startswith((b"_=", b"LC_CTYPE="))]
    assert without == [
        line for line in done.stdout.splitlines() if not line.startswith((b"_=", b"LC_CTYPE="))
    ]
