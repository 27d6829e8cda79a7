"""Which functions take the time of the I/O calls of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SizeTime:
    """Time of those calls of a function whose requests are of about one size, within a factor of two.

    Attributes
    ----------
    mean_bytes : float
    calls : int
    share : float
        Of the time of all I/O calls.
    mean_s : float
        Of a call, s.
    """

    mean_bytes: float
    calls: int
    share: float
    mean_s: float


@dataclass(frozen=True)
class CallTime:
    """Time of the I/O calls of a function, without the calls inside them.

    Attributes
    ----------
    call, layer : str
    calls : int
    time_s : float
        Summed over tasks, s.
    share : float
        Of the time of all I/O calls.
    in_library : bool
        The time passed inside HDF5 or netCDF: storage calls inside were recorded, and are not in it.
    of_size : SizeTime or None
        The size of most of this time; None: the calls move no bytes, no size has most of it, or it
        passed inside a library.
    """

    call: str
    layer: str
    calls: int
    time_s: float
    share: float
    in_library: bool = False
    of_size: SizeTime | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a dict with the names of the attributes."""
        return {**vars(self), "of_size": self.of_size and vars(self.of_size)}
