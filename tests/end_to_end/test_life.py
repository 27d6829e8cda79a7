"""Threads, signal handlers, children, and environments that are out of the ordinary."""

import errno
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands_here import executed

import ensembles
from ensembles.cli.replay_program import ANY_TASKS


def counts(events) -> Counter:
    return Counter(events.calls[call].name for call in events.call)


@pytest.mark.parametrize(("threads", "calls", "rounds"), [(2, 20_000, 1), (8, 3_000, 2), (16, 5, 40)])
def test_every_call_of_every_thread_and_handler_is_recorded(recorder, tmp_path, threads, calls, rounds):
    program = recorder.build("threads")
    said = recorder.execute(program, tmp_path, threads, calls, rounds, check=True).stdout
    handled, mapped = map(int, said.split())
    run = ensembles.open(recorder.run)
    assert run.notes == []
    assert len(run.select(file="*/handler", call="write")) == handled
    # Head, texts, the summary's two, the reserve and the page at the end; window of the main thread, and of
    # few threads in which a handler ran as they ended: on a busy machine, one in forty.
    assert mapped <= 7 + max(7, threads * rounds // 20)
    writes = run.select(file="*/thread.*", call="write")
    assert len(writes) == threads * calls * rounds
    for file in set(writes.file.tolist()):
        mine = writes[writes.file == file]
        assert len(set(mine.thread.tolist())) == 1
        assert mine.offset.tolist() == list(range(0, 16 * calls, 16))
    assert run.info.threads == 1 + threads * rounds  # the main one may have made no call
    assert run.info.beside_main.tolist() == [0 not in run.select().thread.tolist()]


def test_children_are_recorded_apart_and_positions_stay_right(recorder, tmp_path):
    program = recorder.build("processes")
    out = tmp_path / "out"
    finished = recorder.execute(program, out)
    assert (finished.returncode, finished.stdout, finished.stderr) == (5, b"", b"")
    assert out.read_bytes() == b"parentforkedafterexecvforkedexecend"
    run = ensembles.open(recorder.run)
    writes = run.select(call="write", file=str(out))
    text = {(int(offset), int(moved)) for offset, moved in zip(writes.offset, writes.moved, strict=True)}
    assert text == {(0, 6), (6, 6), (12, 5), (17, 4), (21, 7), (28, 4), (32, 3)}
    assert len(run.select(file=f"{out}.child")) == 3
    assert len({process.pid for process in run.info.processes}) == 4
    assert run.notes == []


def test_descriptor_that_stands_for_another_file_is_noticed(recorder, tmp_path):
    recorder.execute(recorder.build("reused_descriptors"), tmp_path, check=True)
    run = ensembles.open(recorder.run)
    for number, name in enumerate("abcde", start=1):
        assert len(run.select(file=str(tmp_path / name), call="write")) == number
    assert len(run.select(call="write")) == 15


def test_switch_leaves_no_trace(recorder, tmp_path):
    recorder.execute(
        recorder.build("acknowledge"), tmp_path / "out", 10, environment={"ENSIO_DISABLE": "1"}, check=True
    )
    assert not recorder.run.exists()


def test_excluded_paths_are_left_out_and_counted(recorder, tmp_path):
    program = recorder.build("acknowledge")
    recorder.execute(
        program, tmp_path / "out", 100, environment={"ENSIO_EXCLUDE": f"{tmp_path}/o*"}, check=True
    )
    run = ensembles.open(recorder.run)
    assert len(run.events) == 0
    assert run.info.processes[0].excluded_calls == 101


def test_a_thread_that_makes_session_files_of_mpi_only_takes_no_share(preload, tmp_path):
    helper = "threading.Thread(target=lambda: os.path.exists('/run/user/0/ucx'))"  # as UCX's thread does
    script = f"import os, threading; made = {helper}; made.start(); made.join(); os.mkdir('{tmp_path}/own')"
    preload.execute(sys.executable, "-c", script, check=True)
    assert list(ensembles.open(preload.run).info.threads_of_tasks) == [1]


def test_writes_that_fail_on_excluded_files_are_recorded(recorder, tmp_path):
    recorder.execute(recorder.build("failed_writes"), tmp_path / "out", check=True)
    run = ensembles.open(recorder.run)
    failed = run.select(failed=True)
    told = Counter(
        (failed.calls[call].name, errno.errorcode[error], failed.files[file], requested)
        for call, error, file, requested in zip(
            failed.call, failed.error, failed.file, failed.requested.tolist(), strict=True
        )
    )
    assert told == {
        ("write", "ENOSPC", "/dev/full", 4096): 80,
        ("pwrite", "ENOSPC", "/dev/full", 10): 1,
        ("writev", "ENOSPC", "/dev/full", 0): 1,
        ("write", "EBADF", "", 7): 1,
        ("fflush", "ENOSPC", "/dev/full", 0): 1,
    }
    assert (failed.duration > 0).all()
    assert (failed.depth == 0).all()
    assert len(run.select(error="ENOSPC", call="write")) == 80
    assert {run.files[file] for file in run.events.file} == {"", "/dev/full", str(tmp_path / "out")}
    # Opens and closes of excluded files, the writes that succeed there, and those to the pipe.
    assert run.info.processes[0].excluded_calls >= 10


def test_run_directory_is_private_and_named_after_program_and_time(recorder, tmp_path):
    program = recorder.build("acknowledge")
    environment = recorder.environment()
    del environment["ENSIO_DIR"]
    subprocess.run(
        [program, tmp_path / "out", "10"], env=environment, cwd=tmp_path, check=True, capture_output=True
    )
    (folder,) = tmp_path.glob("ensio-*")
    program_name, pid, time = folder.name.removeprefix("ensio-").rsplit("-", 2)
    assert program_name == program.name
    run = ensembles.open(folder)
    assert int(pid) == run.info.processes[0].pid
    assert len(time) == len("20260131T235959Z")
    assert folder.stat().st_mode & 0o777 == 0o700
    (record,) = folder.glob("*.ensio")
    assert record.stat().st_mode & 0o777 == 0o600


def test_processes_of_one_launch_agree_on_a_directory_and_the_next_launch_gets_another(recorder, tmp_path):
    program = recorder.build("acknowledge")
    environment = recorder.environment()
    del environment["ENSIO_DIR"]
    for namespace in ("one", "two"):
        ranks = [
            subprocess.Popen(
                [program, tmp_path / f"out.{rank}", "10"],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                env=environment | {"PMIX_NAMESPACE": namespace, "PMIX_RANK": str(rank), "PMI_SIZE": "6"},
            )
            for rank in range(6)
        ]
        assert [rank.wait() for rank in ranks] == [0] * 6
    folders = sorted(tmp_path.glob("ensio-*"))
    assert len(folders) == 2
    for folder in folders:
        run = ensembles.open(folder)
        assert run.notes == []
        assert sorted(run.events.rank.tolist()) == sorted(list(range(6)) * 11)


def launched(recorder, tmp_path, namespace, calls, **more):
    """Two tasks of a launch, one after the other."""
    program = recorder.build("acknowledge")
    for rank in "01":
        environment = {"PMIX_NAMESPACE": namespace, "PMIX_RANK": rank, "PMI_SIZE": "2", **more}
        recorder.execute(program, tmp_path / "out", calls, check=True, environment=environment)


def test_launches_in_one_directory_are_runs_that_are_never_mixed(recorder, tmp_path):
    launched(recorder, tmp_path, "one", 10)
    recorder.execute(recorder.build("acknowledge"), tmp_path / "out", 5, check=True)  # not a task of a launch
    launched(recorder, tmp_path, "two", 20)
    with pytest.raises(
        ensembles.EnsioError, match=r"holds 3 runs, name one of them: .*#1 .acknowledge[a-z-]*, 2 ranks"
    ):
        ensembles.open(recorder.run)
    for number, calls, tasks in ((1, 10, 2), (2, 5, 1), (3, 20, 2)):
        run = ensembles.open(f"{recorder.run}#{number}")
        assert (run.tasks, run.notes) == (tasks, [])
        assert len(run.events) == tasks * (calls + 1)
    with pytest.raises(ensembles.EnsioError, match="holds 3 runs: there is no #4"):
        ensembles.open(f"{recorder.run}#4")
    assert len(ensembles.open(f"{recorder.run}#3", workers=2).summary.calls) > 0
    listed = executed("info", "--json", recorder.run)
    assert [entry["tasks"] for entry in json.loads(listed.stdout)["runs"]] == [2, 1, 2]
    one = f"{recorder.run}#1"
    written = tmp_path / "one.h5"
    for command in (["collect", one, "-o", written], ["report", one, "-o", tmp_path / "report.html"]):
        assert executed(*command).returncode == 0
    assert len(ensembles.open(written).events) == len(ensembles.open(one).events)
    for command in (["modes", recorder.run], ["collect", one], ["collect", recorder.run]):
        refused = executed(*command)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_programs_without_ranks_in_a_row_are_runs(recorder, tmp_path):
    program = recorder.build("acknowledge")
    for calls in (5, 6):
        recorder.execute(program, tmp_path / "out", calls, check=True)
    with pytest.raises(ensembles.EnsioError, match=r"holds 2 runs, name one of them: .*#1 .*without ranks"):
        ensembles.open(recorder.run)
    assert [len(ensembles.open(f"{recorder.run}#{number}").events) for number in (1, 2)] == [6, 7]


def test_programs_without_ranks_at_one_time_are_a_run(recorder, tmp_path):
    program = recorder.build("limits")
    held = [
        subprocess.Popen(
            [program, "homeless", tmp_path / f"out{number}"],
            env=recorder.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(3)
    ]
    for process in held:
        assert process.stdout.readline() == b"ready\n"
    for process in held:
        process.communicate(b"go\n", timeout=600)
    assert ensembles.open(recorder.run).tasks == 3


def test_programs_of_one_command_are_a_run(preload, tmp_path):
    program = preload.build("acknowledge")
    script = f"{program} out 5; {program} out 6"
    for _ in range(2):
        subprocess.run(
            ["ensio", "run", "-o", preload.run, "--extend", "--", "sh", "-c", script],
            env=environment_of_tools(),
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    for number in (1, 2):
        run = ensembles.open(f"{preload.run}#{number}")
        assert (run.tasks, len(run.events)) == (2, 6 + 7)


def environment_of_tools():
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {key: value for key, value in os.environ.items() if not key.startswith("ENSIO_")} | {"PATH": path}


def test_a_used_directory_is_refused_on_request(recorder, tmp_path):
    program = recorder.build("acknowledge")
    recorder.execute(program, tmp_path / "out", 10, check=True)
    (spool,) = recorder.run.iterdir()
    os.utime(spool, (1_700_000_000, 1_700_000_000))  # earlier than this second
    for namespace in ("one", None):
        environment = {"ENSIO_USED_DIR": "refuse"}
        if namespace:
            environment |= {"PMIX_NAMESPACE": namespace, "PMIX_RANK": "0", "PMI_SIZE": "1"}
        done = recorder.execute(program, tmp_path / "out", 10, check=True, environment=environment)
        message = done.stderr.decode()
        assert message.count("\n") == 1
        assert f"{recorder.run} holds an earlier run; set ENSIO_DIR to another folder" in message
        assert list(recorder.run.iterdir()) == [spool]
    recorder.execute(program, tmp_path / "out", 10, check=True, environment={"ENSIO_USED_DIR": "extend"})
    assert len(list(recorder.run.iterdir())) == 2
    recorder.run = recorder.folder / "unused"
    recorder.execute(program, tmp_path / "out", 10, check=True, environment={"ENSIO_USED_DIR": "refuse"})
    assert len(ensembles.open(recorder.run).events) == 11


@pytest.mark.parametrize("flavour", ["openmpi", "mpich"])
def test_mpi_tasks_are_ranked_by_mpi(recorder, tmp_path, flavour):
    program = recorder.build("mpi_writes", compiler=f"mpicc.{flavour}")
    environment = recorder.environment(
        **ANY_TASKS,
    )
    del environment["ENSIO_DIR"]
    if flavour == "mpich":
        environment["OMPI_COMM_WORLD_RANK"] = "7"  # a variable that lies: MPI_Init puts it right
    subprocess.run([f"mpiexec.{flavour}", "-n", "4", program], cwd=tmp_path, env=environment, check=True)
    (folder,) = tmp_path.glob("ensio-mpi_writes*")
    run = ensembles.open(folder)
    assert run.tasks == 4
    assert run.notes == []
    for rank in range(4):
        mine = run.select(rank=str(rank))
        assert counts(mine) == {"MPI_Init": 1, "open": 1, "write": 10 + rank, "close": 1, "MPI_Finalize": 1}
        names = {os.path.basename(run.files[file]) for file in mine.file}
        assert names == {f"rank.{rank}", ""}  # MPI_Init and MPI_Finalize are about no file
