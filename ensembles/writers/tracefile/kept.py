"""Write kept summaries into a ``trace.h5`` (`ensembles.readers.tracefile.kept`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import h5py
import numpy as np

from ensembles.model.events import Events
from ensembles.readers.tracefile.kept import GROUP, MOST_KEPT_BYTES, content_identity
from ensembles.writers.tracefile.columns import put_column, put_text


class FilledOnTheWay(Protocol):
    """Summaries that are filled with the events which a file gets, and kept in it."""

    def watch(self, chunks: Iterator[Events]) -> Iterator[Events]:
        """Yield the chunks unchanged, and add them to the summaries."""
        ...

    def sealed(self, identity: bytes, most_bytes: int) -> Mapping[str, bytes]:
        """Return the summaries of all chunks by name, sealed for a run of this identity."""
        ...


def write_kept(file: h5py.File, summaries: FilledOnTheWay) -> None:
    """Write the summaries of a file that is complete but for them.

    Parameters
    ----------
    file : h5py.File
    summaries : FilledOnTheWay
    """
    sealed = summaries.sealed(content_identity(file, is_own=True), MOST_KEPT_BYTES)
    if not sealed:
        return
    group = file.create_group(GROUP)
    put_text(group, "meaning", "results of passes over the events, with checksums; they may be removed")
    for name, content in sealed.items():
        put_column(group, name, np.frombuffer(content, np.uint8))
