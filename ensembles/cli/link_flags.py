"""``ensio link-flags``: print the options that link the recorder into a program."""

from __future__ import annotations

import argparse
import subprocess
import sys

from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import installed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments: the command has none."""


def execute(args: argparse.Namespace) -> int:
    """Print the link options that the installed ``ensio-cc`` reports."""
    told = subprocess.run([installed("bin/ensio-cc"), "--link-flags"], capture_output=True, text=True)
    if told.returncode:
        raise EnsioError(told.stderr.strip().removeprefix("ensio-cc: "))
    sys.stdout.write(told.stdout)
    return 0
