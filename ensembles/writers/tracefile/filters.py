"""Compression filters for the columns of a ``trace.h5``."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ensembles.model.errors import EnsioError


@dataclass(frozen=True)
class Filter:
    """A compression filter."""

    name: str
    needs: str  # What a reader of such files needs in addition to HDF5; "": nothing

    def options(self) -> dict[str, Any]:
        """Return the arguments of `h5py.Group.create_dataset` for this filter."""
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
        _replace_filter_of_others(hdf5plugin)
        return dict(hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=hdf5plugin.Blosc.SHUFFLE))


def _replace_filter_of_others(hdf5plugin: ModuleType) -> None:
    """Put hdf5plugin's Blosc in the place of another one with the same number.

    netCDF4 adds its folder of plugins to those that HDF5 searches. If it was imported first, HDF5 has found
    its Blosc there, which makes no datasets for h5py, and hdf5plugin leaves it in place.
    """
    if hdf5plugin.get_config().registered_filters.get("blosc") != "unknown":
        return
    from h5py import h5pl

    folders = [h5pl.get(place) for place in range(h5pl.size())]
    for place in reversed(range(len(folders))):
        h5pl.remove(place)
    try:
        is_replaced = hdf5plugin.register(("blosc",), force=True)
    except (OSError, RuntimeError):  # a dataset that is open uses it
        is_replaced = False
    finally:
        for folder in folders:
            h5pl.append(folder)
    if not is_replaced:
        raise EnsioError(
            "HDF5 uses a filter blosc of another package in this process, such as netCDF4's: import "
            "hdf5plugin before it, or choose gzip or zstd"
        )


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
