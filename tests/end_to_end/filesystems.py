"""File systems to run programs on, made for a test and taken away after it: most of this needs root."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")
GLUSTER_ADDRESS = "10.66.0.1"
GLUSTER_PATIENCE_S = 120


class CannotBeHereError(Exception):
    """This machine cannot have the file system; the message says why."""


def need(*commands: str, root: bool = True) -> None:
    """Checks what making a file system takes.

    Raises
    ------
    CannotBeHereError
        If this is not root, or a command is missing.
    """
    if root and os.geteuid() != 0:
        raise CannotBeHereError("only root can mount file systems")
    missing = [command for command in commands if not shutil.which(command)]
    if missing:
        raise CannotBeHereError(f"{' and '.join(missing)} is not installed: ./dev test --real installs it")


def done(*command: object, wrong: str) -> str:
    """What a command says on its way to a file system.

    Raises
    ------
    CannotBeHereError
        If it fails: a container may have a command, and not the right to what it does.
    """
    finished = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if finished.returncode:
        raise CannotBeHereError(f"{wrong}: {(finished.stderr or finished.stdout).strip()}")
    return finished.stdout.strip()


def type_of(folder: Path) -> str:
    """The kernel's name of the type of the file system that a folder is on."""
    return subprocess.check_output(["findmnt", "-n", "-o", "FSTYPE", "-T", folder], text=True).strip()


@contextlib.contextmanager
def mounted(*command: object, at: Path) -> Iterator[Path]:
    """Mounts by a command, and unmounts."""
    at.mkdir()
    done(*command, at, wrong="it cannot be mounted here")
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


@contextlib.contextmanager
def loop_device(image: Path, size_bytes: int) -> Iterator[str]:
    """A block device that is a sparse file."""
    need("losetup")
    with image.open("wb") as file:
        file.truncate(size_bytes)
    device = done("losetup", "--find", "--show", image, wrong="there is no loop device")
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()


@contextlib.contextmanager
def on_loop_device(folder: Path, kind: str) -> Iterator[Path]:
    """A new file system of a kind that mkfs knows."""
    need(f"mkfs.{kind}", "mount")
    with loop_device(folder / "image", 512 << 20) as device:
        done(f"mkfs.{kind}", "-q", device, wrong=f"mkfs.{kind} fails")
        with mounted("mount", "-t", kind, device, at=folder / "mounted") as mount:
            yield mount


@contextlib.contextmanager
def ext4(folder: Path) -> Iterator[Path]:
    """The disk of the machine, if it is ext4, else a loop device."""
    if type_of(folder) == "ext4":
        (folder / "data").mkdir()
        yield folder / "data"
        return
    with on_loop_device(folder, "ext4") as mount:
        yield mount


@contextlib.contextmanager
def xfs(folder: Path) -> Iterator[Path]:
    """XFS on a loop device."""
    with on_loop_device(folder, "xfs") as mount:
        yield mount


@contextlib.contextmanager
def tmpfs(folder: Path) -> Iterator[Path]:
    """Memory."""
    need("mount")
    with mounted("mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", at=folder / "mounted") as mount:
        yield mount


@contextlib.contextmanager
def glusterfs(folder: Path) -> Iterator[Path]:
    """A volume of GlusterFS that is distributed over two bricks.

    Its servers have their own network, /var and process numbers: they meet no other glusterd, and are
    gone with the first of them.
    """
    need("glusterd", "gluster", "glusterfs", "unshare", "nsenter", "ip", "umount")
    for name in ("state", "brick-1", "brick-2"):
        (folder / name).mkdir()
    volume_file = folder / "glusterd.vol"
    volume_file.write_text(
        "volume management\n  type mgmt/glusterd\n"
        f"  option working-directory {folder}/state\n  option transport-type socket\n"
        f"  option transport.socket.bind-address {GLUSTER_ADDRESS}\nend-volume\n"
    )
    start = (
        f"ip link set lo up && ip address add {GLUSTER_ADDRESS}/32 dev lo && "
        "mount -t tmpfs tmpfs /var/log && mkdir -p /var/log/glusterfs/bricks && mount -t tmpfs tmpfs /run && "
        f"mkdir -p /run/gluster && exec glusterd --no-daemon --volfile={volume_file}"
    )
    own = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with (folder / "glusterd.log").open("wb") as log:
        server = subprocess.Popen([*own, "sh", "-c", start], stdout=log, stderr=log)
    try:
        first = first_child(server)
        within = ["nsenter", f"--target={first}", "--net"]
        ask = [*within, "--mount", "--pid", "gluster", "--mode=script"]
        answers([*ask, "volume", "info"], "glusterd does not answer")
        bricks = [f"{GLUSTER_ADDRESS}:{folder}/brick-{number}" for number in (1, 2)]
        done(*ask, "volume", "create", "ensio", *bricks, "force", wrong="GlusterFS makes no volume here")
        done(*ask, "volume", "start", "ensio", wrong="the volume of GlusterFS does not start")
        client = [*within, "glusterfs", f"--volfile-server={GLUSTER_ADDRESS}", "--volfile-id=ensio"]
        client.append(f"--log-file={folder}/client.log")
        with mounted(*client, at=folder / "mounted") as mount:
            answers(["sh", "-c", f"touch {mount}/.there && rm {mount}/.there"], "the bricks do not answer")
            yield mount
    finally:
        server.kill()  # and with it, by --kill-child, all that were started from it
        server.wait()


def first_child(parent: subprocess.Popen) -> int:
    """The process that unshare starts."""
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    until = time.monotonic() + GLUSTER_PATIENCE_S
    while parent.poll() is None and time.monotonic() < until:
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.1)
    raise CannotBeHereError("no process can be started with its own network and /var")


def answers(command: list[str], otherwise: str) -> None:
    """Waits until a command succeeds.

    Raises
    ------
    CannotBeHereError
        If it never does.
    """
    until = time.monotonic() + GLUSTER_PATIENCE_S
    while subprocess.run(command, capture_output=True).returncode:
        if time.monotonic() > until:
            raise CannotBeHereError(otherwise)
        time.sleep(0.5)


@dataclass(frozen=True)
class SlowDisk:
    """A disk with ext4, and a group of processes to which it is slow.

    Attributes
    ----------
    folder : Path
        Where it is mounted.
    device : str
    group : Path
        The group's folder below /sys/fs/cgroup.
    """

    folder: Path
    device: str
    group: Path

    def limit(self, bytes_per_s: int) -> None:
        """Sets the rate at which the group's processes read and write together."""
        number = os.stat(self.device).st_rdev
        for way in ("read", "write"):
            (self.group / f"blkio.throttle.{way}_bps_device").write_text(
                f"{os.major(number)}:{os.minor(number)} {bytes_per_s}"
            )

    def forget(self) -> None:
        """Drops what memory holds of the files."""
        subprocess.run(["umount", self.folder], check=True)
        subprocess.run(["mount", self.device, self.folder], check=True)

    def within(self, *command: object) -> list[str]:
        """A command line that runs a command as a part of the group."""
        enter = f'echo $$ >"{self.group}/cgroup.procs" && exec "$@"'
        return ["sh", "-c", enter, "sh", *map(str, command)]


@contextlib.contextmanager
def slow_disk(folder: Path) -> Iterator[SlowDisk]:
    """A loop device with ext4, which a cgroup (version 1) of ours may throttle."""
    need("mkfs.ext4", "mount")
    if not (BLKIO / "blkio.throttle.read_bps_device").exists():
        raise CannotBeHereError("the kernel has no blkio controller of cgroups (version 1)")
    with loop_device(folder / "image", 512 << 20) as device:
        done("mkfs.ext4", "-q", device, wrong="mkfs.ext4 fails")
        group = BLKIO / f"ensio-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            raise CannotBeHereError(f"no cgroup can be made: {error.strerror}") from None
        try:
            with mounted("mount", device, at=folder / "mounted") as mount:
                yield SlowDisk(mount, device, group)
        finally:
            group.rmdir()
