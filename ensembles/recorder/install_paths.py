"""Where the recorder, the part in C, is installed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def install_prefixes() -> Iterator[Path]:
    """Where to look, best first: the prefix of the ``ensio-cc`` on PATH, Python's own, that of the preload
    library that ``ENSIO_PRELOAD`` names."""
    if driver := shutil.which("ensio-cc"):
        yield Path(driver).resolve().parent.parent
    yield Path(sys.prefix)
    if told := os.environ.get("ENSIO_PRELOAD"):
        yield Path(told).resolve().parent.parent
