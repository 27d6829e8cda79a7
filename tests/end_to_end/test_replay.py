"""Replays: the trace has exactly the pattern's calls, and agrees with what the program measured of itself."""

import json
import os
import re
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from commands_here import executed
from places import PATIENCE_S

import ensembles

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ENSIO_BUILD", ROOT / "build"))
ENSIO = Path(sys.executable).with_name("ensio")
KIB = 1 << 10
NS_PER_S = 1e9

HEAD = """\
title = "a pattern of the tests"
layer = "posix"
[parameters]
tasks = 2
[files.data]
path = "data.bin"
[[phases]]
name = "all"
[[phases.operations]]
call = "open"
file = "data"
"""


def operation(call, **keys):
    entries = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return f'[[phases.operations]]\ncall = "{call}"\nfile = "data"\n{entries}'


def script(folder, body):
    path = folder / "launcher"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def replay(tmp_path, monkeypatch, capfd):
    """Executes ``ensio replay`` in an empty folder; returns what came of it."""
    if not (BUILD / "bin" / "ensio-replay").exists():
        pytest.fail(f"ensio-replay is not built in {BUILD}; run ./dev setup")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:{os.environ['PATH']}")

    def start(*arguments):
        done = executed("replay", *arguments)
        done.stderr += capfd.readouterr().err  # of the programs that it started
        return done

    return start


def replayed(replay, *arguments):
    """The result of a replay of ior that went well."""
    result = replay("ior", "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(("tasks", "repetitions", "calls"), [(1, 1, 1), (3, 2, 4), (8, 5, 1)])
def test_trace_has_exactly_the_calls_of_ior(replay, tmp_path, tasks, repetitions, calls):
    block = 64 * KIB
    result = replayed(
        replay,
        "--tasks",
        tasks,
        "--set",
        f"repetitions={repetitions}",
        "--calls",
        calls,
        "--set",
        "block_bytes=64KiB",
    )
    run = ensembles.open(result["run"])
    events = run.select(layer="posix")
    assert set(run.select(layer="mpisync").depth.tolist()) == {0}
    waits = run.select(call="MPI_Barrier")
    assert len(waits) == tasks * len(result["steps"])
    assert len(run.events) == len(events) + len(waits) + 2 * tasks  # and MPI_Init, MPI_Finalize
    assert run.tasks == tasks
    assert run.info.dropped_events == 0
    assert {run.files[file] for file in events.file} == {str(tmp_path / "ior.dat")}
    for rank in range(tasks):
        own = events[events.rank == rank]
        names = [events.calls[call].name for call in own.call]
        moved = {name: ["lseek", name] * calls for name in ("write", "read")}
        assert names == [
            "open",
            *moved["write"] * repetitions,
            "fsync",
            "close",
            "open",
            *moved["read"] * repetitions,
            "close",
        ]
        for name in ("write", "read"):
            data = own[np.array(names) == name]
            starts = (np.arange(repetitions) * tasks + rank) * block
            pieces = np.arange(calls) * (block // calls)
            np.testing.assert_array_equal(data.offset, (starts[:, None] + pieces).ravel())
            np.testing.assert_array_equal(data.moved, block // calls)
            np.testing.assert_array_equal(data.requested, block // calls)
    assert events.moved[events.moved > 0].sum() >= 2 * tasks * repetitions * block


def test_trace_agrees_with_what_the_program_counted_and_timed(replay):
    tasks, repetitions, calls = 4, 3, 2
    result = replayed(
        replay,
        "--tasks",
        tasks,
        "--set",
        f"repetitions={repetitions}",
        "--calls",
        calls,
        "--set",
        "block_bytes=1MiB",
    )
    events = ensembles.open(result["run"]).select(layer="posix")
    names = np.array([call.name if call else "" for call in events.calls])[events.call]
    assert sum(step["calls"] for step in result["steps"]) == len(events)
    for direction in ("write", "read"):
        steps = [step for step in result["steps"] if step["phase"] == direction]
        assert [step["repetition"] for step in steps] == list(range(repetitions))
        assert [step["bytes"] for step in steps] == [tasks * (1 << 20)] * repetitions
        assert sum(step["bytes"] for step in steps) == events.moved[names == direction].sum()
        duration_s = (
            np.array([events.duration[(events.rank == rank) & (names == direction)] for rank in range(tasks)])
            .reshape(tasks, repetitions, calls)
            .sum(axis=2)
            / NS_PER_S
        )
        for step, slowest_s in zip(steps, duration_s.max(axis=0), strict=True):
            # The program's clock is read outside of the recorder's; the recorder's is calibrated to 0.1 %.
            assert slowest_s <= step["slowest_task_s"] * 1.001
            assert step["slowest_task_s"] <= step["phase_s"]


def test_phases_do_not_overlap_in_the_trace(replay):
    """Between the last call before a barrier and the first one after it nothing of another task may lie."""
    tasks, repetitions = 4, 3
    result = replayed(
        replay, "--tasks", tasks, "--set", f"repetitions={repetitions}", "--set", "block_bytes=1MiB"
    )
    events = ensembles.open(result["run"]).events
    names = np.array([call.name if call else "" for call in events.calls])[events.call]
    writes = [events[(events.rank == rank) & (names == "write")] for rank in range(tasks)]
    starts = np.array([own.start for own in writes])
    ends = np.array([own.end for own in writes])
    assert starts.shape == (tasks, repetitions)
    assert (starts.min(axis=0)[1:] >= ends.max(axis=0)[:-1]).all()


class TestFilesAndFolders:
    def test_data_is_removed_and_the_run_is_private(self, replay, tmp_path):
        result = replayed(replay, "--tasks", 2, "--set", "block_bytes=4KiB")
        [folder] = tmp_path.iterdir()
        assert str(folder) == result["run"]
        assert folder.name.startswith("ensio-ior-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_kept_data_is_where_it_was_asked_for_and_full_size(self, replay, tmp_path):
        (tmp_path / "data here").mkdir()
        result = replayed(
            replay,
            "--tasks",
            2,
            "--set",
            "block_bytes=4KiB",
            "--keep",
            "--directory",
            "data here",
            "-o",
            "run",
        )
        data = tmp_path / "data here" / "ior.dat"
        assert result["data"] == [str(data)]
        assert result["run"] == str(tmp_path / "run")
        content = data.read_bytes()
        assert len(content) == 2 * 5 * 4 * KIB
        blocks = Counter(content[start : start + 8] for start in range(0, len(content), 8))
        assert max(blocks.values()) == 1

    def test_table_for_people_ends_with_what_to_do_next(self, replay):
        result = replay("ior", "--tasks", 2, "--set", "block_bytes=4KiB", "--repetitions", 1, "-o", "run")
        lines = result.stdout.splitlines()
        assert lines[0] == "2 tasks"
        headers = ("phase", "repetition", "calls", "bytes", "slowest task", "time", "rate")
        assert re.split(r"  +", lines[2]) == list(headers)
        (written,) = [line for line in lines if line.startswith("write")]
        assert written.split()[1:5] == ["0", "4", "8.00", "KiB"]
        assert [line.split()[0] for line in lines[4:9]] == ["open", "write", "sync", "read", "close"]
        assert lines[-1] == "recorded in run: look at it with ensio info run"

    def test_file_that_is_there_is_not_touched(self, replay, tmp_path):
        (tmp_path / "ior.dat").write_text("precious")
        result = replay("ior")
        assert result.returncode == 2
        assert "ior.dat: exists already" in result.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["ior.dat"]
        assert (tmp_path / "ior.dat").read_text() == "precious"


class TestVerification:
    """What a replay reads must be what it wrote."""

    def failed(self, replay, tmp_path, *operations, launcher="mpiexec"):
        (tmp_path / "own.toml").write_text(HEAD + "".join(operations))
        result = replay("own.toml", "--launcher", launcher)
        assert result.returncode == 1
        assert not (tmp_path / "data.bin").exists()
        return result.stderr

    def test_bytes_that_nobody_wrote_are_noticed(self, replay, tmp_path):
        told = self.failed(
            replay,
            tmp_path,
            operation("pwrite", offset="rank * 100 + 50", size=50),
            operation("pread", offset="rank * 100 + 37", size=63, when="rank == 1"),
        )
        assert (
            f"rank 1: posix.pread of {tmp_path}/data.bin at offset 137 returned other data than were written"
            in told
        )

    def test_end_of_the_file_is_noticed(self, replay, tmp_path):
        told = self.failed(
            replay,
            tmp_path,
            operation("pwrite", offset=0, size=10, when="rank == 0"),
            operation("pread", offset=0, size=11, when="rank == 0"),
        )
        assert f"rank 0: posix.pread of {tmp_path}/data.bin at offset 0 ended after 10 of 11 bytes" in told

    def test_failed_call_is_told_with_its_reason(self, replay, tmp_path):
        launcher = script(tmp_path, 'ln -s /no/such/folder/file data.bin && exec mpiexec "$@"')
        told = self.failed(replay, tmp_path, launcher=launcher)
        assert f"posix.open of {tmp_path}/data.bin at offset 0 failed: No such file or directory" in told


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing"], "no such pattern"),
        (["./nothing.toml"], "nothing.toml: cannot be read: No such file"),
        (["ior", "--set", "calls=3"], '(block_bytes / calls)": the division leaves a remainder'),
        (["ior", "--set", "block_bytes=many"], '"many" is not a name here'),
        (["ior", "--set", "block_bytes=0"], "block_bytes is 0, it must be at least 1"),
        (["ior", "--set", "block_bytes=900TiB"], "bytes are free, but the pattern writes"),
        (["ior", "--tasks", "0"], "0 is below 1"),
        (["ior", "--directory", "nowhere"], "nowhere: not a writable folder"),
        (["ior", "--launcher", "no-mpi -x"], 'the launcher "no-mpi -x" is not found'),
        (["ior", "--launcher", "a 'b"], "the launcher"),
    ],
)
def test_wrong_usage_is_refused_with_one_sentence(replay, tmp_path, arguments, problem):
    result = replay(*arguments)
    assert result.returncode == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("ensio: ")
    assert problem in line
    assert not any(tmp_path.iterdir())


def test_the_program_says_how_it_is_started_without_mpi(tmp_path):
    command = [BUILD / "bin" / "ensio-replay", "--help"]  # it records itself in the current folder
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: mpiexec -n TASKS ensio-replay [--progress] [--as-recorded] PLAN")


def test_tasks_that_do_not_meet_are_noticed(replay, tmp_path):
    """So it is when the launcher belongs to another MPI than the program."""
    launcher = script(tmp_path, 'exec mpiexec -n 1 "$3" "$4"')
    result = replay("ior", "--tasks", "2", "--launcher", launcher)
    assert result.returncode == 1
    assert "the plan is for 2 tasks, but 1 were started" in result.stderr


def test_a_listener_hears_of_every_step(replay, tmp_path):
    assert replay("ior", "--tasks", 2, "--set", "block_bytes=64KiB", "-o", "plain").returncode == 0
    program = """
import sys
from ensembles.cli.main import main
from ensembles.passes.progress import listen

class Heard:
    def begin(self, work, path, total, unit):
        print(f"{work} {path}: 0 of {total} {unit}", file=sys.stderr)
        self.done = 0
    def advance(self, steps):
        self.done += steps
    def clear(self):
        print("cleared", file=sys.stderr, flush=True)
    def end(self):
        print(f"{self.done} done", file=sys.stderr)

listen(Heard())
sys.exit(main(sys.argv[1:]))
"""
    command = ["replay", "ior", "--tasks", "2", "--set", "block_bytes=64KiB", "-o", "told"]
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0
    assert "steps done" not in done.stdout
    steps = done.stdout.count("\nwrite ") + done.stdout.count("\nread ")
    assert steps
    told = re.search(r"replaying ior: 0 of (\d+) steps", done.stderr)
    assert f"\n{told[1]} done\n" in done.stderr
    assert "cleared\n##ensio" in done.stderr  # a bar would be on the line of the banner
    calls = [len(ensembles.open(tmp_path / name).events) for name in ("plain", "told")]
    assert calls[0] == calls[1]
