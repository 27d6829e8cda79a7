"""Traced functions, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T")

OPS = ("read", "write", "open", "close", "seek", "sync", "meta", "wait")
"""Kinds of operations. `ensembles.model.events.Events.op` is an index into this tuple."""

STORAGE = ("posix", "stdio")
"""Layers whose calls reach the file system; those of other layers are libraries above it."""

_LAYERS_OF_IO = ("posix", "stdio", "mpiio", "hdf5", "netcdf", "pnetcdf")


class Call(NamedTuple):
    """A traced function.

    Attributes
    ----------
    name : str
        Name of the function, for example ``pwrite``.
    layer : str
        ``posix``, ``stdio``, ``mpiio``, ``mpisync``, ``hdf5``, ``netcdf``, ``pnetcdf`` or ``mpimsg``;
        imported traces may have other layers.
    op : str
        Kind of operation, one of `OPS`.

    Examples
    --------
    >>> from ensembles.model.events import Call
    >>> Call("pwrite", "posix", "write").op
    'write'
    """

    name: str
    layer: str
    op: str

    @property
    def waits_for_tasks(self) -> bool:
        """Whether the call waits for other tasks or exchanges messages. Waiting for I/O is I/O."""
        return self.op == "wait" and self.layer not in _LAYERS_OF_IO


def of_calls(function: Callable[[Sequence[Call]], T]) -> Callable[[Sequence[Call]], T]:
    """Cache the last result of a function of the traced calls of a run.

    All chunks of a run share one tuple of calls, so that the last result is usually the right one.
    """
    last: tuple[Sequence[Call], T] | None = None

    @wraps(function)
    def remembering(calls: Sequence[Call]) -> T:
        nonlocal last
        if last is not None and last[0] is calls:
            return last[1]
        answer = function(calls)
        last = (calls, answer) if isinstance(calls, tuple) else None
        return answer

    return remembering


@of_calls
def op_of_calls(calls: Sequence[Call]) -> npt.NDArray[np.uint8]:
    """Return the kind of operation of each traced function.

    Index into `OPS`. Read-only.

    Examples
    --------
    >>> from ensembles.model.events import Call, op_of_calls
    >>> op_of_calls((Call("read", "posix", "read"), Call("fsync", "posix", "sync")))
    array([0, 5], dtype=uint8)
    """
    ops = np.array([OPS.index(call.op) for call in calls], dtype=np.uint8)
    ops.flags.writeable = False
    return ops


@of_calls
def is_io_of_calls(calls: Sequence[Call]) -> npt.NDArray[np.bool_]:
    """Return which traced functions are I/O: all that neither wait for other tasks nor exchange messages.

    Examples
    --------
    >>> from ensembles.model.events import Call, is_io_of_calls
    >>> is_io_of_calls((Call("MPI_Wait", "mpisync", "wait"), Call("MPI_Wait", "mpiio", "wait")))
    array([False,  True])
    """
    is_io = np.array([not call.waits_for_tasks for call in calls], dtype=bool)
    is_io.flags.writeable = False
    return is_io
