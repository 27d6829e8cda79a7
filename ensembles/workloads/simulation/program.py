"""The program ``ensio-simulate``, which executes plans in virtual time."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.passes.progress import advance, is_listened_to
from ensembles.recorder.install_paths import installed

PROGRAM = "ensio-simulate"

_LOOK_S = 0.2
"""Time between two looks at the progress."""


@dataclass(frozen=True)
class Setting:
    """A setting of a model, with default and limits."""

    # usual, least, most: Default, minimum and maximum
    usual: float
    least: float
    most: float


def program() -> Path:
    """Find the program."""
    return installed(f"bin/{PROGRAM}")


def known_settings() -> dict[str, Setting]:
    """Return the settings of models by key, as the program lists them; those of faults are ``fault.ID``."""
    lines = _output([str(program()), "--settings"]).splitlines()
    return {key: Setting(*map(float, numbers)) for key, *numbers in map(str.split, lines)}


def run_program(plan: Path, settings: Path, seed: int, mode: str, folder: Path) -> None:
    """Execute a plan in virtual time, and tell the listener of this process how far it is."""
    command = [str(program()), "--mode", mode, str(plan), str(settings), str(seed), str(folder)]
    ended = threading.Event()
    teller = threading.Thread(target=_tell, args=(folder / "progress", ended), daemon=True)
    if is_listened_to():
        teller.start()
    try:
        _output(command)
    finally:
        ended.set()
        if teller.ident is not None:
            teller.join()


def _tell(progress: Path, ended: threading.Event) -> None:
    """Tell the listener how many rows of the plan were begun, until the program has ended."""
    told, is_over = 0, False
    while not is_over:
        is_over = ended.wait(_LOOK_S)
        try:
            begun = int.from_bytes(progress.read_bytes()[:8], sys.byteorder)
        except OSError:  # not there yet
            continue
        advance(begun - told)
        told = begun


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise EnsioError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode:
        told = done.stderr.strip().removeprefix(f"{PROGRAM}: ")
        raise EnsioError(told or f"{PROGRAM} ended with status {done.returncode}: simulate fewer tasks")
    return done.stdout
