"""Installation paths of the recorder, the C part of ensio."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ensembles.files.site_settings import setting
from ensembles.model.errors import MissingLibrary


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
    program = os.path.basename(name)
    if program == "ensio-otf2":
        raise MissingLibrary(
            f"{program} is not installed, because it is built where OTF2's library is: install that (Debian: "
            "libopen-trace-format2-dev pkgconf), then ensio again (README.md; a clone: ./dev setup)"
        )
    raise MissingLibrary(f"{program} is not found: install ensio again (README.md; a clone: ./dev setup)")
