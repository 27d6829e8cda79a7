"""``ensio-simulate``, the program that goes through plans in virtual time: where it is, how it is run."""

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
    """A setting of the model that the program knows.

    Attributes
    ----------
    usual, least, most : float
        Its value where a model does not give one, and the limits of what it may be.
    """

    usual: float
    least: float
    most: float


def program() -> Path:
    """The path of the program.

    Raises
    ------
    EnsioError
        It is not there.
    """
    for prefix in install_prefixes():
        path = prefix / "bin" / PROGRAM
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which(PROGRAM)
    if found:
        return Path(found)
    raise EnsioError(
        f"{PROGRAM} is not there: build it with ./dev setup, or put the bin folder of an installation on PATH"
    )


def known_settings() -> dict[str, Setting]:
    """What a model may set, by key; faults are ``fault.ID``. The program says it, so that it is told once.

    Raises
    ------
    EnsioError
        The program is not there, or does not run.
    """
    lines = _output([str(program()), "--settings"]).splitlines()
    return {key: Setting(*map(float, numbers)) for key, *numbers in map(str.split, lines)}


def run_program(plan: Path, settings: Path, seed: int, mode: str, folder: Path) -> None:
    """Go through a plan; what comes out is in `folder`, which must be there (testbed/simulate/output.h).

    Raises
    ------
    EnsioError
        The program's own sentence.
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
