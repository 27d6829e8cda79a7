"""Files of the version before this one are read: they have no call sites."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from made_spools import made_events, spool

import ensembles as en
from ensembles.model.events import COLUMNS
from ensembles.run.collect import collect


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 4: without the column and the table of sites."""
    spool(tmp_path / "run" / "0.spool", [made_events(300, 1)], rank=0, tasks=1, files={1: "/data/a"})
    path = Path(collect(str(tmp_path / "run"), str(tmp_path / "old.h5"))[0])
    with h5py.File(path, "r+") as file:
        file.attrs["version"] = 4
        del file["events/site"], file["sites"]
    return path


def test_events_of_an_old_file_have_no_site(old: Path, tmp_path: Path) -> None:
    run, spools = en.open(old), en.open(tmp_path / "run")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(run.events, name), getattr(spools.events, name), err_msg=name)
    assert run.notes == spools.notes
    assert len(run.events.site) == 300
    assert not run.events.site.any()
    assert list(run.events.sites) == [""]


def test_a_file_of_another_version_is_refused(old: Path) -> None:
    with h5py.File(old, "r+") as file:
        file.attrs["version"] = 3
    with pytest.raises(en.EnsioError, match="version is 3"):
        en.open(old)
