"""The recorder's own coding of job files, called from Python."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from project import BUILD

from ensembles.readers.native.job_file_codec import BLOCK_EVENTS

LIBRARY = BUILD / "tests/c/libensio-coding.so"


class Coder:
    """The C functions, by way of a library that holds nothing else."""

    def __init__(self) -> None:
        if not LIBRARY.exists():
            pytest.fail(f"{LIBRARY} is not built; run ./dev setup test")
        self._library = ctypes.CDLL(str(LIBRARY))
        self._block = np.empty(self._library.coding_most_block_bytes(), "u1")

    def block(self, events: np.ndarray) -> tuple[bytes, int]:
        """One block of the first of these events, and how many they are."""
        events = np.ascontiguousarray(events)
        count = ctypes.c_uint32(len(events))
        length = self._library.coding_events(
            events.ctypes.data_as(ctypes.c_void_p),
            ctypes.byref(count),
            self._block.ctypes.data_as(ctypes.c_void_p),
        )
        return self._block[:length].tobytes(), count.value

    def blocks(self, events: np.ndarray) -> list[bytes]:
        """All of these events."""
        blocks = []
        while len(events):
            block, count = self.block(events[:BLOCK_EVENTS])
            assert 0 < count <= len(events)
            blocks.append(block)
            events = events[count:]
        return blocks

    def text(self, known: bytes, text: bytes, room: int | None = None) -> bytes:
        """A text by what is known before it; ``b""`` where there is not enough room."""
        out = ctypes.create_string_buffer(2 * len(text) + 64)
        room = len(out) if room is None else room
        length = self._library.coding_text(known + text, len(known), len(text), out, room)
        return out.raw[:length]
