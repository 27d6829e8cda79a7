"""Filters of HDF5 that are not part of it."""

from __future__ import annotations

from contextlib import suppress

import h5py

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.readers.tracefile.checked_parts import lies_here


def find_plugins(group: h5py.Group, path: str) -> None:
    """See that the filters of the columns in a group are there; those of hdf5plugin are brought in.

    Raises
    ------
    EnsioError
        One is missing.
    """
    for name in COLUMNS:
        if not lies_here(group, name):
            continue  # which is told later
        dataset = group[name]
        if not isinstance(dataset, h5py.Dataset):
            continue
        settings = dataset.id.get_create_plist()
        for place in range(settings.get_nfilters()):
            code, _, _, label = settings.get_filter(place)
            if h5py.h5z.filter_avail(code):
                continue
            with suppress(ImportError):
                import hdf5plugin  # noqa: F401 # importing it brings its filters in
            if not h5py.h5z.filter_avail(code):
                known = label.decode("ascii", "replace") or "without a name"
                raise EnsioError(
                    f"{path} is compressed by HDF5's filter {code} ({known}), which is not installed: "
                    "install ensio[filters], or make the file again with ensio collect --filter gzip"
                )
