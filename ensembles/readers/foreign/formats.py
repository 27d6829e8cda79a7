"""Which reader takes a file or folder that ensio did not write: told by its content, not by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ensembles.readers.foreign import otf2, recognising
from ensembles.readers.foreign.importing import Import


class Format(NamedTuple):
    """A format of another tool.

    Attributes
    ----------
    name : str
        As people call it.
    recognises : callable
        Takes a path and, of a file, its first `BEGINNING_BYTES` (of a folder: None). Reads no more than it
        needs, imports nothing heavy, and takes no file of another format for its own.
    read : callable
        Takes the path, gives an `Import`.
    """

    name: str
    recognises: Callable[[str, bytes | None], bool]
    read: Callable[[str], Import]


BEGINNING_BYTES = 4096

FORMATS: tuple[Format, ...] = (
    Format("Darshan", recognising.has_darshan, recognising.read_darshan),
    Format("DFTracer", recognising.has_dftracer, recognising.read_dftracer),
    Format("Recorder", recognising.has_recorder, recognising.read_recorder),
    Format("OTF2", otf2.recognises, otf2.read),
    Format("strace", recognising.has_strace, recognising.read_strace),
)
"""In the order in which they are asked."""


def format_of(path: str, beginning: bytes | None) -> Format | None:
    """The format of a file (its first bytes) or folder (None); None: none of them."""
    return next((known for known in FORMATS if known.recognises(path, beginning)), None)
