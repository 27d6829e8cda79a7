"""Write kept summaries into a ``trace.h5`` (`ensembles.readers.tracefile.kept`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import h5py
import numpy as np

from ensembles.model.events import Events
from ensembles.model.metadata import RunMetadata
from ensembles.passes.kept import name_of, seal, to_bytes
from ensembles.readers.tracefile.contents import KEY, ChunkContents
from ensembles.readers.tracefile.kept import GROUP, MOST_KEPT_BYTES, content_identity
from ensembles.writers.tracefile.columns import put_column, put_text

_PYRAMID_PART = 20
_LEAST_PYRAMID_BYTES = 1 << 15
"""The levels of the pyramid take at most this part of the file, or these bytes."""


class FilledOnTheWay(Protocol):
    """Summaries that are filled with the events which a file gets, and kept in it."""

    def watch(self, chunks: Iterator[Events]) -> Iterator[Events]:
        """Yield the chunks unchanged, and add them to the summaries."""
        ...

    def sealed(self, identity: bytes, most_bytes: int, pyramid_bytes: int) -> Mapping[str, bytes]:
        """Return the summaries of all chunks by name, sealed for a run of this identity.

        They have at most `most_bytes`, of which `pyramid_bytes` are for the pyramid.
        """
        ...


def write_kept(
    file: h5py.File, metadata: RunMetadata, contents: ChunkContents, summaries: FilledOnTheWay | None
) -> None:
    """Write what is kept of a file that is complete but for that."""
    identity = content_identity(file, is_own=True)
    own = seal(identity, KEY, to_bytes(contents, metadata))
    sealed = {name_of(identity, KEY): own}
    if summaries is not None:
        pyramid_bytes = max(file.id.get_filesize() // _PYRAMID_PART, _LEAST_PYRAMID_BYTES)
        sealed |= summaries.sealed(identity, MOST_KEPT_BYTES - len(own), pyramid_bytes)
    group = file.create_group(GROUP)
    put_text(group, "meaning", "results of passes over the events, with checksums; they may be removed")
    for name, content in sealed.items():
        put_column(group, name, np.frombuffer(content, np.uint8))
