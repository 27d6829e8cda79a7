"""The program ``ensio-simulate``, which executes plans in virtual time."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import install_prefixes

PROGRAM = "ensio-simulate"


@dataclass(frozen=True)
class Setting:
    """A setting of a model, with default and limits.

    Attributes
    ----------
    usual, least, most : float
        Default, minimum and maximum.
    """

    usual: float
    least: float
    most: float


def program() -> Path:
    """Find the program.

    Raises
    ------
    EnsioError
        It is not installed.
    """
    for prefix in install_prefixes():
        path = prefix / "bin" / PROGRAM
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which(PROGRAM)
    if found:
        return Path(found)
    raise EnsioError(
        f"{PROGRAM} is not installed: run ./dev setup, or put the bin folder of an installation on PATH"
    )


def known_settings() -> dict[str, Setting]:
    """Return the settings of models by key; the keys of faults are ``fault.ID``.

    The program lists them, so that C and Python share one definition.

    Raises
    ------
    EnsioError
        The program is not installed, or does not run.
    """
    lines = _output([str(program()), "--settings"]).splitlines()
    return {key: Setting(*map(float, numbers)) for key, *numbers in map(str.split, lines)}


def run_program(plan: Path, settings: Path, seed: int, mode: str, folder: Path) -> None:
    """Execute a plan in virtual time.

    Parameters
    ----------
    plan, settings : Path
        Files of the plan and of the model's settings.
    seed : int
        From 0 to 2**64 - 1.
    mode : {"trace", "profile"}
    folder : Path
        Existing folder for the output (testbed/simulate/output.h).

    Raises
    ------
    EnsioError
        The program failed; the message is that of the program.
    """
    _output([str(program()), "--mode", mode, str(plan), str(settings), str(seed), str(folder)])


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise EnsioError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode:
        told = done.stderr.strip().removeprefix(f"{PROGRAM}: ")
        raise EnsioError(told or f"{PROGRAM} ended with status {done.returncode}: simulate fewer tasks")
    return done.stdout
