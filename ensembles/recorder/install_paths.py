"""Installation paths of the recorder, the C part of ensio."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ensembles.files.site_settings import setting
from ensembles.model.errors import EnsioError

TO_INSTALL = (
    "install ensio again (README.md), from its sources (pip, or cmake -D ENSIO_TESTBED=ON) if a wheel or the "
    "recorder alone lacks it, and put its bin folder on PATH; in a clone, ./dev setup builds everything"
)
"""What to do where a program or data of the recorder or the testbed is not found."""


def install_prefixes() -> Iterator[Path]:
    """Yield the prefixes to search for the recorder's files, the most likely first.

    These are the prefixes of the ``ensio-cc`` on PATH, of this package, and of ``ENSIO_PRELOAD``.
    """
    if driver := shutil.which("ensio-cc"):
        yield Path(driver).resolve().parent.parent
    yield from (folder for folder in Path(__file__).parents if (folder / "share" / "ensio").is_dir())
    if told := setting("ENSIO_PRELOAD"):
        yield Path(told).resolve().parent.parent


def installed(name: str) -> Path:
    """Return the absolute path of a file or folder of the installation, such as ``bin/ensio-cc``."""
    for prefix in install_prefixes():
        if (path := prefix / name).exists():
            return path.absolute()
    raise EnsioError(f"{os.path.basename(name)} is not found: {TO_INSTALL}")
