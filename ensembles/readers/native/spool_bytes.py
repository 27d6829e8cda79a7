"""Read the bytes of a spool from the spool itself or from a job file."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ensembles.files.untrusted import Reading, open_regular
from ensembles.model.c_layout import CONSTANTS, TEXT, Structure
from ensembles.model.errors import EnsioError
from ensembles.readers.native.job_file_codec import decode_text

OTHER_VERSION = "read it with the ensio that recorded it, or copy it again if it is damaged"
"""What to do about a version that is not read: a damaged number is one, too."""


class Piece(NamedTuple):
    """Location of a part of a spool in a job file."""

    # position, length: Offset in the spool and length, bytes
    position: int
    length: int
    # place, coded: Offset in the job file and length of the coded part, bytes
    place: int
    coded: int


class JobSummary(NamedTuple):
    """Location of the summary in a job file."""

    path: str  # Job file
    # position, coded: Offset and length of the coded summary, bytes
    position: int
    coded: int
    checksum: int  # CRC-32 of the coded summary
    length: int  # Length of the decoded summary, bytes


@dataclass(frozen=True, slots=True)
class Contents:
    """Where the bytes of a spool are; each reader opens them for itself, as threads share this.

    A job file provides only the parts that are neither events nor texts.
    """

    path: str  # Path of the spool
    job_path: str = ""  # Path of the job file to read; "": the spool is read
    pieces: Sequence[Piece] = ()  # Parts in the job file

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
        """Read bytes of the spool from an offset in it on: fewer at its end."""
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

    def rows(self, kind: Structure, last: str, windows: Iterable[Sequence[int]]) -> tuple[np.ndarray, int]:
        """Read the complete rows of windows, and count the incomplete ones before the last that ended.

        The recorder stores the rows of a window in order, and the member `last` of each at its end. A window
        begins with its offset in the spool and its number of rows.
        """
        parts, lost = [np.empty(0, kind.dtype)], 0
        (first, *_) = kind.dtype.names or ()  # the ticks of the row, of which only the end may be left
        for window in windows:
            raw = self.read(window[1] * kind.size, window[0])
            rows = np.frombuffer(raw, kind.dtype, len(raw) // kind.size)
            ended = np.flatnonzero(rows[last])
            complete = ended[rows[first][ended] != 0]
            parts.append(rows[complete])
            lost += int(ended.max(initial=-1)) + 1 - len(complete)
        return np.concatenate(parts), lost

    def _part(self, piece: Piece, begin: int, end: int) -> bytes:
        low, high = max(begin, piece.position), min(end, piece.position + piece.length)
        if low >= high:
            return b""
        if self._last[0] != piece:
            coded = os.pread(self._descriptor, piece.coded, piece.place)
            self._last = piece, decode_text(coded, b"", piece.length)
        return self._last[1][low - piece.position : high - piece.position]


_FILE, _FILE_FACTS, _REGION, _SITE, _CALLS, _PROPERTIES = (
    CONSTANTS[f"ENSIO_TEXT_{kind}"]
    for kind in ("FILE", "FILE_FACTS", "REGION", "SITE", "CALLS", "PROPERTIES")
)
_MOST_KNOWN = 1 << 10
_TAKEN = (1).to_bytes(4, sys.byteorder)
"""What an entry has in the place of its sum, when it is summed."""


@dataclass(slots=True)
class Texts:
    """The texts of a window, or of several. Spools share them: they are not changed."""

    # properties, calls_text, files, facts, sites, region_names, unknown: As of
    # `ensembles.readers.native.spool.Spool`
    properties: dict[bytes, bytes] = field(default_factory=dict)
    calls_text: bytes = b""
    files: list[tuple[int, bytes]] = field(default_factory=list)
    facts: dict[int, bytes] = field(default_factory=dict)
    sites: list[tuple[int, bytes]] = field(default_factory=list)
    region_names: dict[int, bytes] = field(default_factory=dict)
    unknown: int = 0
    is_whole: bool = True  # Whether every entry is complete


class KnownTexts:
    """The texts of the spools of a run that were parsed before."""

    def __init__(self) -> None:
        self._texts: dict[bytes, Texts] = {}
        self._properties: dict[bytes, dict[bytes, bytes]] = {}
        self._calls: dict[bytes, bytes] = {}

    def parsed(self, text: bytes) -> Texts:
        """Parse the text entries of a window."""
        found = self._texts.get(text)
        if found is None:
            found = self._parse(text)
            if len(self._texts) < _MOST_KNOWN:
                self._texts[text] = found
        return found

    def _parse(self, text: bytes) -> Texts:
        texts = Texts()
        position = 0
        while position + TEXT.size <= len(text):
            kind, _, number, length, summed = TEXT.unpack(text, position)
            begin, end = position + TEXT.size, position + TEXT.size + length
            if (kind == 0 and not summed) or end > len(text):
                texts.is_whole = False
                break
            body = text[begin:end]
            position = end + -end % 8
            found = kind ^ zlib.crc32(body, zlib.crc32(text[begin - 12 : begin - 4] + _TAKEN))
            if summed not in (0, 1, found):
                texts.is_whole = False
                continue
            if kind == _FILE:
                texts.files.append((number, body))
            elif kind == _FILE_FACTS:
                texts.facts[number] = texts.facts.get(number, b"") + body
            elif kind == _REGION:
                texts.region_names[number] = body
            elif kind == _SITE:
                texts.sites.append((number, body))
            elif kind == _CALLS:
                texts.calls_text = self._calls.setdefault(body, body)
            elif kind == _PROPERTIES:
                texts.properties = self._joined(texts.properties, body)
            elif kind:
                texts.unknown += 1
        texts.is_whole &= position >= len(text)
        return texts

    def _joined(self, properties: dict[bytes, bytes], body: bytes) -> dict[bytes, bytes]:
        mine = self._properties.get(body)
        if mine is None:
            mine = dict([line.partition(b"=")[::2] for line in body.split(b"\0") if line])
            if len(self._properties) < _MOST_KNOWN:
                self._properties[body] = mine
        return properties | mine if properties else mine
