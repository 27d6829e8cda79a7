"""Read the bytes of a spool from the spool itself or from a job file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from ensembles.files.untrusted import Reading, open_regular
from ensembles.model.errors import EnsioError
from ensembles.readers.native.job_file_codec import decode_text


class Piece(NamedTuple):
    """Location of a part of a spool in a job file.

    Attributes
    ----------
    position, length : int
        Offset in the spool and length, bytes.
    place, coded : int
        Offset in the job file and length of the coded part, bytes.
    """

    position: int
    length: int
    place: int
    coded: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Where the bytes of a spool are; each reader opens them for itself, as threads share this.

    A job file provides only the parts that are neither events nor texts.

    Attributes
    ----------
    path : str
        Path of the spool.
    job_path : str
        Path of the job file to read; "": the spool is read.
    pieces : sequence of Piece
        Parts in the job file.
    """

    path: str
    job_path: str = ""
    pieces: Sequence[Piece] = ()

    @contextmanager
    def opened(self) -> Iterator[OpenContents]:
        """Open the file, and close it at the end of the context."""
        path = self.job_path or self.path
        with Reading(path):
            file = open_regular(path)
        with file:
            yield OpenContents(self, file.fileno())


class OpenContents:
    """The bytes of a spool by their offsets in it, for one reader."""

    def __init__(self, place: Contents, descriptor: int) -> None:
        self._at, self._descriptor = place, descriptor
        self._last: tuple[Piece | None, bytes] = (None, b"")

    def read(self, length: int, position: int) -> bytes:
        """Read bytes of the spool.

        Parameters
        ----------
        length, position : int
            Number of bytes, and offset in the spool.

        Returns
        -------
        bytes
            Fewer at the end of the spool.

        Raises
        ------
        EnsioError
            The file cannot be read or is damaged.
        """
        at = self._at
        try:
            if not at.job_path:
                return os.pread(self._descriptor, length, position)
            found = b"".join(self._part(piece, position, position + length) for piece in at.pieces)
        except OSError as error:
            raise EnsioError(f"{at.job_path or at.path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise EnsioError(
                f"{at.job_path} is damaged: its part of {os.path.basename(at.path)} cannot be decoded"
            ) from error
        return found

    def _part(self, piece: Piece, begin: int, end: int) -> bytes:
        low, high = max(begin, piece.position), min(end, piece.position + piece.length)
        if low >= high:
            return b""
        if self._last[0] != piece:
            coded = os.pread(self._descriptor, piece.coded, piece.place)
            self._last = piece, decode_text(coded, b"", piece.length)
        return self._last[1][low - piece.position : high - piece.position]
