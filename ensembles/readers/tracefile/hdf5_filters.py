"""HDF5 filters that are not part of the HDF5 library."""

from __future__ import annotations

from contextlib import suppress

import h5py

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS
from ensembles.readers.tracefile.checked_parts import lies_here


def find_plugins(group: h5py.Group, path: str) -> None:
    """Check that the filters of all columns of a group are available; load those of hdf5plugin if needed.

    Parameters
    ----------
    group : h5py.Group
    path : str
        Path of the file, for messages.

    Raises
    ------
    EnsioError
        A filter is missing.
    """
    for name in COLUMNS:
        if not lies_here(group, name):
            continue  # the reader of the column reports it
        dataset = group[name]
        if not isinstance(dataset, h5py.Dataset):
            continue
        settings = dataset.id.get_create_plist()
        for place in range(settings.get_nfilters()):
            code, _, _, label = settings.get_filter(place)
            if h5py.h5z.filter_avail(code):
                continue
            with suppress(ImportError):
                import hdf5plugin  # noqa: F401 # the import registers its filters
            if not h5py.h5z.filter_avail(code):
                known = label.decode("ascii", "replace") or "without a name"
                raise EnsioError(
                    f"{path} is compressed by HDF5's filter {code} ({known}), which is not installed: "
                    "install ensio[filters], or make the file again with ensio collect --filter gzip"
                )
