"""Compression filters for the columns of a ``trace.h5``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensembles.model.errors import EnsioError


@dataclass(frozen=True)
class Filter:
    """A compression filter.

    Attributes
    ----------
    name : str
    needs : str
        What a reader of such files needs in addition to HDF5; "": nothing.

    Examples
    --------
    >>> from ensembles.writers.tracefile.filters import FILTERS
    >>> FILTERS["gzip"].options()
    {'compression': 'gzip', 'compression_opts': 1, 'shuffle': True}
    """

    name: str
    needs: str

    def options(self) -> dict[str, Any]:
        """Return the arguments of `h5py.Group.create_dataset` for this filter.

        Returns
        -------
        dict

        Raises
        ------
        EnsioError
            The filter is not installed.
        """
        if self.name == "none":
            return {}
        if self.name == "gzip":
            return {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        if self.name == "lzf":
            return {"compression": "lzf", "shuffle": True}
        try:
            import hdf5plugin
        except ImportError as error:
            raise EnsioError(
                f"the filter {self.name} needs hdf5plugin, which is not installed: pip install hdf5plugin, "
                "or choose gzip"
            ) from error
        if self.name == "zstd":
            return {"shuffle": True, **hdf5plugin.Zstd(clevel=1)}
        return dict(hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=hdf5plugin.Blosc.SHUFFLE))


_PLUGIN = "HDF5's registered plugin for it (in Python: pip install hdf5plugin)"

GZIP = Filter("gzip", "")
FILTERS = {
    entry.name: entry
    for entry in (
        GZIP,
        Filter("none", ""),
        Filter("lzf", "h5py, or its filter lzf as a plugin"),
        Filter("zstd", _PLUGIN),
        Filter("blosc", _PLUGIN),
    )
}
"""Filters by name. Every HDF5 reads the first two."""
