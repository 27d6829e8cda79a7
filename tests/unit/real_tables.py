"""Tables of real runs, which lie beside the repository and are not part of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from project import ROOT


def real_table(name: str) -> dict[str, np.ndarray]:
    """The columns of a table; the test is skipped where it is not there.

    Tables are looked for in the folder that the environment variable ENSIO_DATA names, else in
    ``../shared/data`` beside the repository's root.
    """
    folder = Path(os.environ.get("ENSIO_DATA") or ROOT.parent / "shared" / "data")
    path = folder / "tables" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"there is no {path}: set ENSIO_DATA to the folder of the real tables")
    with np.load(path, allow_pickle=False) as table:
        return dict(table)
