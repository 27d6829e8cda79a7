"""Folders in which programs run: on the disk, on a throttled one, in memory, and under a model."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ensembles.workloads.simulation.live_model import environment_for, shared_model

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
BLKIO, CPU = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup/cpu")
_MOST_SHARES = 200_000

THROTTLED_BYTES_PER_S = 20 << 20
_DISK_BYTES = 768 << 20
_MODEL = """
targets 4
target_MB_per_s 400
request_ms 0.2
stripe_MiB 1
mds_threads 4
mds_op_ms 0.3
mds_create_ms 0.6
commit_ms 1
link_MB_per_s 1000
stream_MB_per_s 800
request_noise 0.1
call_noise 0.1
mds_noise 0.2
close_flushes 1
"""


class Skipped(Exception):
    """Raised if this machine cannot make a place; the text is the reason."""


class Places:
    """The places of a machine, each made when it is first asked for."""

    def __init__(self, scratch: Path, first: bool = False) -> None:
        self.scratch = scratch
        self._first = first
        self._stack = ExitStack()
        self._made: dict[str, Path | Skipped] = {}
        self._shared: Path  # the model of the place "model"
        self.group: Path | None = None
        """Control group in which programs run that use the throttled disk."""
        self.processors_group: Path | None = None
        """Control group of all programs; None: they compete with everything else."""

    def __enter__(self) -> Places:
        if self._first:
            if not os.access(CPU / "cgroup.procs", os.W_OK):
                raise SystemExit("--first needs root and the controller cpu of cgroup v1")
            self.processors_group = self._stack.enter_context(_group(CPU))
            (self.processors_group / "cpu.shares").write_text(str(_MOST_SHARES))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def folder(self, name: str) -> Path:
        """Return the folder of a place: ``data``, ``slow``, ``model`` or ``memory``."""
        if name not in self._made:
            make = {"data": self._disk, "slow": self._throttled, "model": self._model, "memory": self._memory}
            try:
                self._made[name] = make[name]()
            except Skipped as reason:
                self._made[name] = reason
        found = self._made[name]
        if isinstance(found, Skipped):
            raise found
        return found

    def _disk(self) -> Path:
        folder = self.scratch / "data"
        folder.mkdir()
        return folder

    def _memory(self) -> Path:
        if not os.access("/dev/shm", os.W_OK):
            raise Skipped("there is no /dev/shm that can be written")
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="ensio-", dir="/dev/shm")))

    def _throttled(self) -> Path:
        if os.geteuid() != 0 or not shutil.which("losetup") or not shutil.which("mkfs.ext4"):
            raise Skipped("a throttled disk needs root, losetup and mkfs.ext4")
        if not (BLKIO / "blkio.throttle.write_bps_device").exists():
            raise Skipped("a throttled disk needs the controller blkio of cgroup v1")
        image = self.scratch / "disk"
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, _DISK_BYTES)
        found = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
        if found.returncode:
            raise Skipped(f"no loop device: {found.stderr.strip()}")
        device = found.stdout.strip()
        self._stack.callback(subprocess.run, ["losetup", "-d", device], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", device], check=True)
        folder = self.scratch / "slow"
        folder.mkdir()
        subprocess.run(["mount", device, folder], check=True)
        self._stack.callback(subprocess.run, ["umount", folder], check=True)
        self.group = self._stack.enter_context(_group(BLKIO))
        number = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
        for op in ("read", "write"):
            limit = f"{number} {THROTTLED_BYTES_PER_S}"
            (self.group / f"blkio.throttle.{op}_bps_device").write_text(limit)
        return folder

    def _model(self) -> Path:
        folder = self.scratch / "model"
        folder.mkdir()
        self._shared = self._stack.enter_context(shared_model(_MODEL, 1, 8))
        return folder

    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        """Return an environment in which the files of the place ``model`` are under the model."""
        return environment_for(self._shared, [self.scratch / "model"], environment)


@contextmanager
def _group(controller: Path) -> Iterator[Path]:
    """Make a control group."""
    group = controller / f"ensio-habits-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Remove a group whose last processes may not have ended yet."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)
    group.rmdir()
