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
from ensembles.recorder.install_paths import installed

LIBRARY = "libensio-pfs.so"
STATE_PROGRAM = "bin/ensio-pfs-state"

_TASKS_PER_NODE = 4
"""Default of models that do not set it (testbed/pfsmodel/settings.h)."""

_MEMORY = Path("/dev/shm")
"""Preferred place of the shared state: the kernel would write pages of a file on a disk back."""


@dataclass(frozen=True)
class DelayReport:
    """Counters of the calls under a model."""

    calls: int  # Calls that started in the model
    model_s: float  # Sum of the durations of completed calls in the model, seconds
    # bytes_read, bytes_written: Bytes requested from the model; for streams, requested by libc
    bytes_read: int
    bytes_written: int
    # Calls whose real duration exceeded that of the model. They are not delayed, and their durations are
    # those of the machine.
    longer_calls: int
    longer_s: float  # Sum of these excesses, seconds
    # late_median_s, late_p90_s, late_p99_s: Quantiles of the time between the end of a call in the model and
    # its return, seconds; NaN without delayed calls
    late_median_s: float
    late_p90_s: float
    late_p99_s: float
    # Requests of POSIX asynchronous I/O, which non-blocking MPI calls may use; not delayed
    asynchronous_calls: int
    nested_calls: int  # Calls of signal handlers in threads that were being delayed; not delayed
    # Calls that were not delayed because more threads made calls than the model has slots
    without_slot_calls: int
    let_go_calls: int  # Calls released before they were complete in the model
    # Number of times the state of the model was created again because a process was killed while it updated
    # the state
    restarts: int
    gone_callers: int  # Threads and processes that ended

    def sentences(self) -> list[str]:
        """Return the counters as sentences for a user."""
        if not self.calls:
            return ["no call accessed a file under the model"]
        told = [
            f"{self.calls:,} calls were delayed by the model; their durations in it sum to "
            f"{self.model_s:,.3f} s"
        ]
        if self.longer_calls:
            told.append(
                f"{self.longer_calls:,} calls took longer than in the model, by {self.longer_s:,.3f} s in "
                "total: their durations are those of this machine"
            )
        if self.late_median_s == self.late_median_s:
            told.append(
                f"the others returned late by {1e6 * self.late_median_s:,.0f} us (median) and "
                f"{1e6 * self.late_p99_s:,.0f} us (99th percentile)"
            )
        if self.asynchronous_calls:
            told.append(
                f"{self.asynchronous_calls:,} asynchronous requests were not delayed: their durations are "
                "those of this machine"
            )
        partial = self.nested_calls + self.without_slot_calls + self.let_go_calls
        if partial:
            told.append(
                f"{partial:,} calls were not fully delayed: {self.nested_calls:,} in signal handlers, "
                f"{self.without_slot_calls:,} beyond the number of threads of the model, "
                f"{self.let_go_calls:,} released early"
            )
        if self.restarts:
            told.append(
                f"the model was restarted {self.restarts:,} times, because a process was killed while it "
                "updated the state"
            )
        return told


@contextmanager
def shared_model(settings: str, seed: int, tasks: int | None = None) -> Iterator[Path]:
    """Create a model that all processes of this machine share while the context lasts.

    `tasks`: from which a straggler is drawn if that fault is on and the settings name none.
    """
    program = installed(STATE_PROGRAM)
    memory = str(_MEMORY) if os.access(_MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="ensio-pfs-", dir=memory, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        text = folder / "settings"
        text.write_text(settings + _stragglers(settings, seed, tasks))
        made = subprocess.run([program, "make", folder, text, str(seed)], capture_output=True, text=True)
        if made.returncode:
            raise EnsioError(f"the model cannot be created: {_message(made.stderr)}")
        yield folder


def environment_for(
    model: Path, roots: Sequence[Path], environment: Mapping[str, str], without: Sequence[Path] = ()
) -> dict[str, str]:
    """Return an environment in which programs run under a model, `without` some folders below the roots.

    A preloaded recorder stays first, so that it records the durations of the model.
    """
    for root in (*roots, *without):
        if not root.is_dir():
            raise EnsioError(f"{root}: not a folder: name a folder whose files are to be under the model")
        if ":" in str(root.absolute()):
            raise EnsioError(f"{root}: the path of a folder under the model must not contain a colon")
    preloaded = [*filter(None, [environment.get("LD_PRELOAD")]), str(installed(f"lib/{LIBRARY}"))]
    return {
        **environment,
        "LD_PRELOAD": ":".join(preloaded),
        "ENSIO_PFS": str(model),
        "ENSIO_PFS_ROOT": ":".join(
            [*(str(root.absolute()) for root in roots), *(f"!{root.absolute()}" for root in without)]
        ),
    }


def held_back(model: Path) -> DelayReport:
    """Read the counters of a model."""
    done = subprocess.run([installed(STATE_PROGRAM), "status", model], capture_output=True, text=True)
    if done.returncode:
        raise EnsioError(f"the state of the model cannot be read: {_message(done.stderr)}")
    values = dict(line.split() for line in done.stdout.splitlines())
    counted: dict[str, Any] = {
        name: float(values[name]) if kind == "float" else int(values[name])
        for name, kind in DelayReport.__annotations__.items()
    }
    return DelayReport(**counted)


def _stragglers(settings: str, seed: int, tasks: int | None) -> str:
    """Return settings that name the stragglers; the model would draw them from all of its slots."""
    values = dict(words for line in settings.splitlines() if len(words := line.split()) == 2)
    named = ""
    for fault, key in (("straggler-task", "straggler_task"), ("straggler-node", "straggler_node")):
        if float(values.get(f"fault.{fault}", 0)) > 0 and float(values.get(key, -1)) < 0:
            if tasks is None:
                raise EnsioError(
                    f"{fault}: the number of tasks is unknown: give --tasks, or set {key} in the model"
                )
            task = random.Random(f"{fault} {seed}").randrange(tasks)
            per_node = int(float(values.get("tasks_per_node", _TASKS_PER_NODE)))
            named += f"\n{key} {task if key == 'straggler_task' else task // per_node}\n"
    return named


def _message(output: str) -> str:
    return output.strip().removeprefix("ensio-pfs-state: ") or "unknown reason"
