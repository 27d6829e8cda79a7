"""Installation paths of the recorder, the C part of ensio."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

TO_INSTALL = (
    "put the bin folder of an installation on PATH, which the Python package alone is not: cmake --install "
    "makes one (README.md), in a clone ./dev setup"
)
"""What to do where a program or data of the recorder or the testbed is not found."""


def install_prefixes() -> Iterator[Path]:
    """Yield the prefixes to search for the recorder's files, the most likely first.

    These are the prefix of the ``ensio-cc`` on PATH, the prefix of Python, and the prefix of the preload
    library that ``ENSIO_PRELOAD`` names.
    """
    if driver := shutil.which("ensio-cc"):
        yield Path(driver).resolve().parent.parent
    yield Path(sys.prefix)
    if told := os.environ.get("ENSIO_PRELOAD"):
        yield Path(told).resolve().parent.parent
