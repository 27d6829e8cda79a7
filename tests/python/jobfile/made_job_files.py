"""Job files with known contents: what spools hold, coded as the recorder does it, and put together here."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from coder import Coder

from ensembles.readers.layout import (
    CONSTANTS,
    EVENT,
    JOB,
    JOB_DATA,
    JOB_PROCESS,
    JOB_WINDOW,
    SPOOL,
    WINDOW,
)
from ensembles.readers.spool import read_spool

HEADER_BYTES = CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]
TEXT_BYTES = CONSTANTS["ENSIO_SPOOL_TEXT_BYTES"]
SHARED_BYTES = 1 << 16


def collect_spools(coder: Coder, spools: list[Path], to: Path) -> Path:
    """Put these spools (of events and texts alone) into one job file."""
    data, parts, position = bytearray(), [], JOB.size
    for path in spools:
        raw = path.read_bytes()
        head = SPOOL.unpack(raw)
        windows, pieces = [], []
        for window in read_spool(str(path)).windows:
            events = np.frombuffer(raw, EVENT.dtype, window.slots, window.position)
            events = events[: len(events) if events["call"].all() else int(np.argmin(events["call"] != 0))]
            blocks = coder.blocks(events)
            for block in blocks:
                count = int.from_bytes(block[8:12], "little")
                pieces.append(JOB_DATA.pack(position=position + len(data), bytes=len(block), count=count))
                data += block
            begin = window.position - HEADER_BYTES
            header = {f"window_{key}": value for key, value in WINDOW.unpack(raw, begin)._asdict().items()}
            windows.append(JOB_WINDOW.pack(position=begin, taken=len(events), data=len(blocks), **header))
        text = raw[TEXT_BYTES : TEXT_BYTES + head.text_bytes]
        parts.append((path.name, raw[: SPOOL.size], text, windows, pieces))
    shared = parts[0][2][:SHARED_BYTES]
    records = b"".join(
        _record(coder, b"" if number == 0 else shared, *part) for number, part in enumerate(parts)
    )
    job = JOB.pack(
        magic=CONSTANTS["ENSIO_JOB_MAGIC"],
        version=CONSTANTS["ENSIO_JOB_VERSION"],
        event_bytes=EVENT.size,
        spool_version=CONSTANTS["ENSIO_SPOOL_VERSION"],
        processes=len(parts),
        bytes=position + len(data) + len(records),
        records=position + len(data),
        shared_bytes=len(shared),
    )
    to.write_bytes(job + data + records)
    return to


def _record(coder, shared, name, head, text, windows, pieces) -> bytes:
    coded = coder.text(shared, text) if text else b""
    tail = name.encode() + coded + b"".join(windows) + b"".join(pieces)
    members = {
        "magic": CONSTANTS["ENSIO_JOB_PROCESS_MAGIC"],
        "bytes": JOB_PROCESS.size + len(tail),
        "name_bytes": len(name.encode()),
        "text_bytes": len(text),
        "coded_bytes": len(coded),
        "windows": len(windows),
        "data": len(pieces),
    }
    start = JOB_PROCESS.size - SPOOL.size
    record = JOB_PROCESS.pack(**members)[:start] + head + tail
    checked = JOB_PROCESS.dtype.fields["name_bytes"][1]
    members["checksum"] = zlib.crc32(record[checked:])
    return JOB_PROCESS.pack(**members)[:start] + head + tail
