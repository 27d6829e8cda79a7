"""Real programs under the model of a parallel file system (``libensio-pfs.so``)."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import install_prefixes

LIBRARY = "libensio-pfs.so"
STATE_PROGRAM = "ensio-pfs-state"

_TASKS_PER_NODE = 4
"""Of a model that does not say it (testbed/pfsmodel/settings.h)."""

_MEMORY = Path("/dev/shm")
"""Where the shared state best lies: pages of a file on a disk would be written back now and then."""


@dataclass(frozen=True)
class DelayReport:
    """What is counted of the calls under a model.

    Parameters
    ----------
    calls : int
        Calls that were begun in the model.
    model_s : float
        The model's durations of those that came to an end, all together.
    bytes_read, bytes_written : int
        That the model was asked for. Of streams: by libc, not by the program.
    longer_calls, longer_s : int, float
        Calls that took longer for real than in the model, and by how much all together: nothing was added to
        these, and the model's time is not what they show.
    late_median_s, late_p90_s, late_p99_s : float
        Quantiles of the time by which the other calls came back after the model's; NaN if there are none.
    asynchronous_calls : int
        Requests of POSIX asynchronous I/O, as MPI's non-blocking calls may make them; not held back.
    nested_calls : int
        Made by signal handlers of threads that were held back; not held back themselves.
    without_slot_calls : int
        Not held back, because more threads made calls than the model has room for.
    let_go_calls : int
        Let go before they were complete in the model.
    restarts : int
        How often the model was made new, because a process was killed while it was at work on it.
    gone_callers : int
        Threads and processes that ended.
    """

    calls: int
    model_s: float
    bytes_read: int
    bytes_written: int
    longer_calls: int
    longer_s: float
    late_median_s: float
    late_p90_s: float
    late_p99_s: float
    asynchronous_calls: int
    nested_calls: int
    without_slot_calls: int
    let_go_calls: int
    restarts: int
    gone_callers: int

    def sentences(self) -> list[str]:
        """What a person should know of it, in plain sentences."""
        if not self.calls:
            return ["no call on a file under the model was seen"]
        told = [f"{self.calls:,} calls were held back as the model says: {self.model_s:.3f} s of its time"]
        if self.longer_calls:
            told.append(
                f"{self.longer_calls:,} calls took longer for real than in the model, "
                f"by {self.longer_s:.3f} s in all: these times are the machine's, not the model's"
            )
        if self.late_median_s == self.late_median_s:
            told.append(
                f"the others came back {1e6 * self.late_median_s:.0f} us late at the median, "
                f"{1e6 * self.late_p99_s:.0f} us at the 99th percentile"
            )
        if self.asynchronous_calls:
            told.append(
                f"{self.asynchronous_calls:,} asynchronous requests were not held back: "
                "their times are the machine's"
            )
        partial = self.nested_calls + self.without_slot_calls + self.let_go_calls
        if partial:
            told.append(
                f"{partial:,} calls were not held back as the model says: {self.nested_calls:,} of signal "
                f"handlers, {self.without_slot_calls:,} of too many threads, {self.let_go_calls:,} let go"
            )
        if self.restarts:
            told.append(
                f"the model was made new {self.restarts} times, because a process was killed at work on it"
            )
        return told


@contextmanager
def shared_model(settings: str, seed: int, tasks: int | None = None) -> Iterator[Path]:
    """A model that all processes of this machine share, for as long as the context lasts.

    Parameters
    ----------
    settings : str
        The model's settings, lines of "key value".
    seed : int
        Of the model's noise; from 0 to 2**64 - 1.
    tasks : int, optional
        How many there will be: from these a straggler is drawn, if that fault is on and the settings name
        none.

    Yields
    ------
    Path
        The folder in which its state lies.

    Raises
    ------
    EnsioError
        If a setting is wrong, a straggler is to be drawn from an unknown number of tasks, or there is no
        room for the state.
    """
    program = find_program(STATE_PROGRAM)
    memory = str(_MEMORY) if os.access(_MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="ensio-pfs-", dir=memory, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        text = folder / "settings"
        text.write_text(settings + _stragglers(settings, seed, tasks))
        made = subprocess.run([program, "make", folder, text, str(seed)], capture_output=True, text=True)
        if made.returncode:
            raise EnsioError(f"the model cannot be made: {_told(made.stderr)}")
        yield folder


def environment_for(
    model: Path, roots: Sequence[Path], environment: Mapping[str, str], without: Sequence[Path] = ()
) -> dict[str, str]:
    """An environment whose programs run under a model.

    Parameters
    ----------
    model : Path
        Of `shared_model`.
    roots : sequence of Path
        Folders whose files are under the model.
    environment : mapping of str
        What the programs get otherwise. A recorder that is preloaded stays in front, and so records the
        model's times.
    without : sequence of Path
        Folders in these whose files are not.

    Raises
    ------
    EnsioError
        If the library is not installed, or a root is not a folder.
    """
    for root in (*roots, *without):
        if not root.is_dir():
            raise EnsioError(f"{root}: is not a folder; only the files in a folder can be under the model")
        if ":" in str(root.absolute()):
            raise EnsioError(f"{root}: a folder under the model must have no colon in its name")
    preloaded = [*filter(None, [environment.get("LD_PRELOAD")]), str(find_library())]
    return {
        **environment,
        "LD_PRELOAD": ":".join(preloaded),
        "ENSIO_PFS": str(model),
        "ENSIO_PFS_ROOT": ":".join(
            [*(str(root.absolute()) for root in roots), *(f"!{root.absolute()}" for root in without)]
        ),
    }


def held_back(model: Path) -> DelayReport:
    """What was counted so far of the calls under a model.

    Raises
    ------
    EnsioError
        If there is no model in that folder.
    """
    told = subprocess.run([find_program(STATE_PROGRAM), "status", model], capture_output=True, text=True)
    if told.returncode:
        raise EnsioError(f"the state of the model cannot be read: {_told(told.stderr)}")
    values = dict(line.split() for line in told.stdout.splitlines())
    counted: dict[str, Any] = {
        name: float(values[name]) if kind == "float" else int(values[name])
        for name, kind in DelayReport.__annotations__.items()
    }
    return DelayReport(**counted)


def find_library() -> Path:
    """The library that holds calls back.

    Raises
    ------
    EnsioError
        If it is not installed.
    """
    return _find("lib", LIBRARY)


def find_program(name: str) -> Path:
    """One of the programs beside it.

    Raises
    ------
    EnsioError
        If it is not installed.
    """
    return _find("bin", name)


def _stragglers(settings: str, seed: int, tasks: int | None) -> str:
    """Settings that name the stragglers: the model would draw them from all callers that it has room for."""
    values = dict(words for line in settings.splitlines() if len(words := line.split()) == 2)
    named = ""
    for fault, key in (("straggler-task", "straggler_task"), ("straggler-node", "straggler_node")):
        if float(values.get(f"fault.{fault}", 0)) > 0 and float(values.get(key, -1)) < 0:
            if tasks is None:
                raise EnsioError(f"{fault}: among how many tasks is not known: give --tasks, or {key}")
            task = random.Random(f"{fault} {seed}").randrange(tasks)
            per_node = int(float(values.get("tasks_per_node", _TASKS_PER_NODE)))
            named += f"\n{key} {task if key == 'straggler_task' else task // per_node}\n"
    return named


def _find(folder: str, name: str) -> Path:
    for prefix in install_prefixes():
        if (path := prefix / folder / name).is_file():
            return path.absolute()
    raise EnsioError(f"{name} is not found: put the bin folder of the installed recorder on PATH")


def _told(message: str) -> str:
    return message.strip().removeprefix("ensio-pfs-state: ") or "it does not say why"
