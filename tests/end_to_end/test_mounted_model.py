"""A folder mounted as a file system that takes the model's time: what no library can be preloaded into."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from places import BUILD, PROGRAMS
from test_under_model import FAST, MB_PER_S, MIB, MIB_S, MPI, OPERATION_S, quiet

from ensembles.workloads.simulation.live_model import held_back, shared_model

MOUNT = BUILD / "bin" / "ensio-pfs-fuse"


def why_not() -> str | None:
    """Why nothing can be mounted here."""
    if not MOUNT.is_file():
        return "ensio-pfs-fuse is not built: there is no libfuse3"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened here"
    if not shutil.which("fusermount3"):
        return "there is no fusermount3"
    return None


pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


class Mounted:
    """A mounted folder, for as long as the context lasts."""

    def __init__(self, model, folder):
        self.model = model
        self.backing = folder / "backing"
        self.point = folder / "point"
        self.backing.mkdir()
        self.point.mkdir()

    def __enter__(self):
        self.process = subprocess.Popen([MOUNT, self.model, self.backing, self.point])
        while not os.path.ismount(self.point):
            assert self.process.poll() is None, "the file system cannot be mounted"
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        subprocess.run(["fusermount3", "-u", self.point], check=True)
        assert self.process.wait() == 0


def test_a_static_program_takes_the_models_time(tmp_path):
    program = tmp_path / "static"
    source = PROGRAMS / "under_model.c"
    subprocess.run(["gcc", "-O2", "-w", "-static", "-pthread", source, "-o", program], check=True)
    with shared_model(quiet(), 1) as model, Mounted(model, tmp_path) as mounted:
        (mounted.backing / "file").write_bytes(bytes(4 * MIB))
        done = subprocess.run([program, mounted.point / "file", "some"], check=True, capture_output=True)
        counted = held_back(model)
    assert float(done.stdout) >= 4 * MIB_S
    assert counted.bytes_read == 4 * MIB
    # Open, four stats and close at least; the kernel looks the path up beside.
    assert counted.model_s >= 4 * MIB_S + 6 * OPERATION_S
    assert counted.calls >= 4 + 6


def test_what_is_written_is_what_is_read(tmp_path):
    content = np.random.default_rng(2).bytes(3 * MIB + 5)
    with shared_model(FAST, 1) as model, Mounted(model, tmp_path) as mounted:
        folder = mounted.point / "a" / "b"
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(content)
        with open(folder / "file", "ab") as file:
            file.write(b"end")
        os.truncate(folder / "file", len(content) + 1)
        (folder / "file").rename(folder / "renamed")
        (folder / "link").symlink_to("renamed")
        os.link(folder / "renamed", folder / "hard")
        assert (folder / "link").read_bytes() == content + b"e"
        assert (mounted.backing / "a" / "b" / "hard").read_bytes() == content + b"e"
        assert sorted(os.listdir(folder)) == ["hard", "link", "renamed"]
        with open(folder / "hard", "rb") as file:
            (folder / "hard").unlink()
            assert os.fstat(file.fileno()).st_size == len(content) + 1
            assert file.read() == content + b"e"
        with pytest.raises(FileNotFoundError):
            (folder / "nothing").read_bytes()
        shutil.rmtree(mounted.point / "a")
        assert os.listdir(mounted.point) == []
        counted = held_back(model)
    assert counted.bytes_written == len(content) + 3
    assert counted.let_go_calls == counted.restarts == 0


def test_every_rank_is_a_task_of_its_own(tmp_path):
    """Eight readers of one target, each of them a rank: the environment of the calling process says which."""
    text = f"import os, sys; os.pread(os.open(sys.argv[1], os.O_RDONLY), {MIB // 4}, 0)"
    with shared_model(quiet(), 1) as model, Mounted(model, tmp_path) as mounted:
        (mounted.backing / "file").write_bytes(bytes(MIB))
        command = ["mpiexec", "-n", "8", sys.executable, "-c", text, str(mounted.point / "file")]
        subprocess.run(command, check=True, env=dict(os.environ) | MPI)
        counted = held_back(model)
        slots = taken_slots(model)
    assert counted.bytes_read == 2 * MIB
    assert counted.model_s >= 2 * MIB / 1e6 / MB_PER_S
    assert set(range(8)) <= slots


def taken_slots(model) -> set[int]:
    """Slots of the shared state that were anybody's: their count of calls is not 0."""
    told = subprocess.run(
        [BUILD / "bin" / "ensio-pfs-state", "slots", model], check=True, capture_output=True, text=True
    )
    return {int(line.split()[0]) for line in told.stdout.splitlines()}
