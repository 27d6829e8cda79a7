"""Servers of this machine, plain and recorded, each time in its own folder, as a user without rights."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from places import BUILD, PRELOAD

import ensembles

MODES = ("trace", "profile", "tail")
LIMIT_S = 900
STEP_S = 0.02


class Service:
    """A folder for a server and its clients, and the environment in which they run.

    Parameters
    ----------
    folder : Path
        Made here; the server's user owns it.
    library : Path
        The preload library, where every user can read it.
    mode : str
        A mode of the recorder, or ``plain``: without it.
    """

    def __init__(self, folder: Path, library: Path, mode: str):
        self.folder = folder
        self.mode = mode
        self.record = folder / "run"
        folder.mkdir(mode=0o755)
        unwanted = ("ENSIO_", "PG", "LC_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        self.environment = kept | {"LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(folder)}
        if mode != "plain":
            recorder = {"LD_PRELOAD": str(library), "ENSIO_DIR": str(self.record), "ENSIO_MODE": mode}
            self.environment |= recorder | {"ENSIO_LAUNCH": "server"}  # its programs are one run
        # Root's servers give their rights up, or refuse to run as root.
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user:
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)

    def _options(self, as_root: bool) -> dict:
        options = {"env": self.environment, "cwd": self.folder}
        if self.user and not as_root:
            options |= {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        return options

    def client(self, *command: object, check: bool = True, **options) -> str:
        """Run a program to its end; what it printed."""
        done = subprocess.run(
            [str(word) for word in command],
            **self._options(as_root=False), capture_output=True, text=True, timeout=LIMIT_S, **options,
        )  # fmt: skip
        if check and done.returncode:
            said = done.stdout[-1000:] + done.stderr[-2000:]
            pytest.fail(f"{command[0]} ended with {done.returncode}: {said}")
        return done.stdout

    @contextmanager
    def server(self, *command: object, as_root: bool = False) -> Iterator[subprocess.Popen]:
        """Start a server. Whatever happens, none of its processes outlives the block."""
        with open(self.folder / "server.log", "ab") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                **self._options(as_root), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            kill_all(process)

    def log(self) -> str:
        """What the servers have said, for messages of tests."""
        return (self.folder / "server.log").read_text(errors="replace")[-3000:]

    def run(self):
        """The run that was recorded."""
        return ensembles.open(self.record)


def descendants(pid: int) -> list[int]:
    """A process and all processes below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(entry.read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = [pid]
    for known in found:
        found += children.get(known, [])
    return found


def kill_all(process: subprocess.Popen) -> None:
    """End a server by SIGKILL, with all processes that it has started, and wait for them."""
    everyone = descendants(process.pid) if process.poll() is None else []
    for pid in everyone:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(timeout=LIMIT_S)
    wait_until(lambda: not any(is_running(pid) for pid in everyone), "killed processes to end")


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it is more than an entry that its parent has not fetched yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Ask again and again until the condition holds; fail if it does not within `LIMIT_S`."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"waited {LIMIT_S} s in vain for {what}")
        time.sleep(STEP_S)


def added(run) -> dict[str, tuple[int, int]]:
    """Count and bytes of each call, as the summary of any mode holds them."""
    sums: dict[str, tuple[int, int]] = {}
    cells = run.summary.cells
    columns = (cells[name].tolist() for name in ("call", "count", "moved"))
    for call, count, moved in zip(*columns, strict=True):
        name = run.summary.calls[call].name
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + count, before[1] + moved)
    return sums


def written_to(run, path: Path) -> int:
    """Bytes that a trace's calls have written to a file."""
    events = run.select(layer="posix", op="write", file=str(path))
    return int(events.moved[events.moved > 0].sum())


def check_recorded(service: Service, caused: str = "did not end (its|their) recording") -> None:
    """Nothing was lost, and what is missing is missing for a reason that the test has caused.

    `caused`: what the note of it says; by default that a process was killed.
    """
    run = service.run()
    assert run.mode == service.mode
    if service.mode != "tail":  # tail keeps only the slowest calls as events
        assert run.info.dropped_events == 0
    notes = [note for note in run.notes if not re.search(caused, note)]
    assert not notes, "; ".join(notes)


def tool(name: str, package: str) -> Path:
    """A program of Debian's package, which the tests need."""
    for pattern in ("/usr/lib/postgresql/*/bin", "/usr/sbin", "/usr/bin"):
        for folder in sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True):
            if (folder / name).exists():
                return folder / name
    pytest.fail(f"there is no {name} here; ./dev test and ./dev test-long install the package {package}")


@contextmanager
def services() -> Iterator[Callable[[str], Service]]:
    """Gives a service for each mode, in one folder that every user can look into."""
    if not PRELOAD.exists():
        pytest.fail(f"the recorder is not built in {BUILD}; run ./dev setup")
    folder = Path(tempfile.mkdtemp(prefix="ensio-servers-"))
    try:
        folder.chmod(0o755)
        for library in PRELOAD.parent.glob("libensio-*.so"):
            shutil.copy(library, folder)
        yield lambda mode: Service(folder / mode, folder / PRELOAD.name, mode)
    finally:
        shutil.rmtree(folder)
