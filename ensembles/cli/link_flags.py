"""``ensio link-flags``: the options that link the recorder into a program."""

from __future__ import annotations

import argparse
import subprocess
import sys

from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import install_prefixes

NAME = "link-flags"
HELP = "the options that link a program with the recorder: cc app.o -o app $(ensio link-flags)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def execute(args: argparse.Namespace) -> int:
    """Print what the installed ``ensio-cc``, which knows them, says they are."""
    sys.stdout.write(link_flags())
    return 0


def link_flags() -> str:
    """The options, parted by spaces, in one line.

    Raises
    ------
    EnsioError
        The recorder is not installed, or not wholly.
    """
    for prefix in install_prefixes():
        driver = prefix / "bin" / "ensio-cc"
        if driver.is_file():
            told = subprocess.run([driver, "--link-flags"], capture_output=True, text=True)
            if told.returncode:
                raise EnsioError(told.stderr.strip().removeprefix("ensio-cc: "))
            return told.stdout
    raise EnsioError(
        "the recorder is not installed: build it with cmake, and put the bin folder of its prefix on PATH"
    )
