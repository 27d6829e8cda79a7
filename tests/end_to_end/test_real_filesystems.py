"""The replay, recorded, on real file systems. Opt-in: ./dev test --real, as root for most of them."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import filesystems
import numpy as np
import pytest
from places import BUILD
from plans import Row, everyone, write_plan
from replaying import SEED, check_written, start
from test_replay_layers import ALL_LAYERS, FILES, TASKS

import ensembles
from ensembles.cli.replay_program import ANY_TASKS

pytestmark = pytest.mark.real

ENSIO = Path(sys.executable).with_name("ensio")
MIB = 1 << 20
KINDS = {
    "ext4": (filesystems.ext4, "ext4"),
    "tmpfs": (filesystems.tmpfs, "tmpfs"),
    "xfs": (filesystems.xfs, "xfs"),
    "glusterfs": (filesystems.glusterfs, "fuse.glusterfs"),
}


@contextlib.contextmanager
def made(filesystem, folder: Path):
    """A file system for a test, which is skipped with the reason where this machine cannot have it."""
    with contextlib.ExitStack() as stack:
        try:
            there = stack.enter_context(filesystem(folder))
        except filesystems.CannotBeHereError as reason:
            pytest.skip(str(reason))
        yield there


@pytest.fixture(scope="module", params=list(KINDS))
def mounted(request, tmp_path_factory):
    """A file system of each kind, and the kernel's name of the kind."""
    filesystem, kind = KINDS[request.param]
    with made(filesystem, tmp_path_factory.mktemp(request.param)) as folder:
        yield folder, kind


def ensio(*arguments: object) -> dict:
    """What a command says as JSON."""
    path = f"{BUILD / 'bin'}:{os.environ['PATH']}"
    command = [ENSIO, *map(str, arguments), "--json"]
    finished = subprocess.run(
        command, env={**os.environ, **ANY_TASKS, "PATH": path}, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.parametrize(
    "pattern",
    [
        ["ior", "--tasks", 4, "--set", "block_bytes=1MiB"],
        ["ior", "--tasks", 4, "--set", "block_bytes=1MiB", "--layer", "mpiio"],
        ["madbench", "--tasks", 4],
        ["gcrm", "--tasks", 4],
    ],
    ids=lambda pattern: "-".join(map(str, pattern)),
)
def test_patterns_are_replayed_and_recorded(mounted, tmp_path, pattern):
    folder, kind = mounted
    result = ensio("replay", *pattern, "--directory", folder, "-o", tmp_path / "run")
    run = ensembles.open(result["run"])
    said = ensio("info", result["run"])
    assert said["tasks"] == result["tasks"]
    assert said["dropped_events"] == 0
    assert run.notes == []
    layer = "mpiio" if "mpiio" in pattern else "posix"
    own = run.select(layer=layer, file=f"{folder}/*")
    own = own[own.depth == 0]
    barriers = len(run.select(call="MPI_Barrier")) - result["tasks"] * len(result["steps"])  # of the pattern
    assert len(own) + barriers == sum(step["calls"] for step in result["steps"])
    assert said["bytes_read"] + said["bytes_written"] == sum(step["bytes"] for step in result["steps"])
    phases = ensio("phases", result["run"])["phases"]
    assert [phase["name"] for phase in phases] == [step["phase"] for step in result["steps"]]
    assert {run.info.filesystem_of(path).type for path in run.files if path.startswith(f"{folder}/")} == {
        kind
    }
    assert not any(folder.glob("[!.]*.dat"))


def test_all_layers_are_replayed_and_recorded(mounted, replay_program, tmp_path):
    folder, kind = mounted
    paths = [folder / f"layers-{name}" for name in FILES]
    plan = write_plan(tmp_path / "all.plan", TASKS, paths, ALL_LAYERS, seed=SEED)
    finished = start(replay_program("openmpi"), "openmpi", plan, tmp_path / "run", TASKS, preloaded=True)
    assert finished.returncode == 0, finished.stderr
    rows = [row for _, rows in ALL_LAYERS for row in rows]
    run = ensembles.open(tmp_path / "run")
    assert run.notes == []
    for number, path in enumerate(paths):
        check_written(path, number, rows)
        assert run.info.filesystem_of(str(path)).type == kind
        for op in ("read", "write"):
            planned = [row for row in rows if row.file == number and op in row.call]
            layer = planned[0].call.split(".")[0]
            events = run.select(layer=layer, op=op, file=str(path))
            events = events[(events.depth == 0) & (events.call != call_number(run, "H5Awrite"))]
            assert len(events) == len(planned)
            assert events.moved.sum() == sum(row.bytes for row in planned)


def call_number(run, name: str) -> int:
    """A call's number in a run; -1: it is not there."""
    return next((number for number, call in enumerate(run.calls) if call.name == name), -1)


class TestSlowDisk:
    """A disk of known speed: what the kernel lets through is the rate that the record shows."""

    TASKS = 2
    CALLS = 24
    LIMIT = 16 * MIB

    def rows(self, call: str) -> list[Row]:
        """A contiguous block of each task, in calls of 1 MiB."""
        return [
            Row(task, call, 0, (task * self.CALLS + number) * MIB, MIB)
            for task in range(self.TASKS)
            for number in range(self.CALLS)
        ]

    def test_rate_of_the_disk_is_the_rate_of_the_record(self, replay_program, tmp_path):
        opened, closed = everyone(self.TASKS, "posix.open"), everyone(self.TASKS, "posix.close")
        synced = everyone(self.TASKS, "posix.fsync")
        with made(filesystems.slow_disk, tmp_path) as disk:
            path = disk.folder / "data"
            steps = [
                ("write", opened + self.rows("posix.pwrite")),
                ("sync", synced + closed),
            ]
            plan = write_plan(tmp_path / "write.plan", self.TASKS, [path], steps, seed=SEED)
            program = replay_program("openmpi")
            finished = start(program, "openmpi", plan, tmp_path / "written", self.TASKS)
            assert finished.returncode == 0, finished.stderr

            disk.forget()
            disk.limit(self.LIMIT)
            steps = [("open", opened), ("read", self.rows("posix.pread")), ("close", closed)]
            plan = write_plan(tmp_path / "read.plan", self.TASKS, [path], steps, seed=SEED)
            finished = start(program, "openmpi", plan, tmp_path / "read", self.TASKS, around=disk.within)
            assert finished.returncode == 0, finished.stderr

        (rates,) = (entry for entry in ensio("rate", tmp_path / "read")["rates"] if entry["op"] == "read")
        assert rates["bytes"] == self.TASKS * self.CALLS * MIB
        assert rates["mean_bytes_per_s"] == pytest.approx(self.LIMIT, rel=0.25)
        phases = ensio("phases", tmp_path / "read")["phases"]
        assert [phase["name"] for phase in phases] == ["open", "read", "close"]
        assert rates["bytes"] / phases[1]["time_s"] == pytest.approx(self.LIMIT, rel=0.25)
        events = ensembles.open(tmp_path / "read").select(op="read", file=str(path))
        assert np.array_equal(np.sort(events.offset), np.arange(self.TASKS * self.CALLS) * MIB)
