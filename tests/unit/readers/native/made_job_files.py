"""Job files with known contents: what spools hold, coded as the recorder does it, and put together here."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from coder import Coder

from ensembles.model.c_layout import (
    CONSTANTS,
    EVENT,
    JOB,
    JOB_CALL,
    JOB_CELL,
    JOB_DATA,
    JOB_PROCESS,
    JOB_SUMMARY,
    JOB_WINDOW,
    SPOOL,
    TEXT,
    WINDOW,
)
from ensembles.readers.native.spool import read_spool
from ensembles.summaries.cells import CellSummary

HEADER_BYTES = CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]
TEXT_BYTES = CONSTANTS["ENSIO_SPOOL_TEXT_BYTES"]
SHARED_BYTES = 1 << 16


def collect_spools(
    coder: Coder,
    spools: list[Path],
    to: Path,
    summary: bytes = b"",
    calls: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Put these spools (of events, marks and texts alone) into one job file.

    With a summary, all of them are in that; `calls` has the rows of each, by the name of the spool.
    """
    data, parts, position = bytearray(), [], JOB.size
    for path in spools:
        raw = path.read_bytes()
        head = SPOOL.unpack(raw)
        windows, pieces = [], []
        spool = read_spool(str(path))
        for window in spool.windows:
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
        for window in spool.marks:
            contents = raw[window.position : window.position + window.slots * EVENT.size]
            piece = with_sum(coder.text(b"", contents))
            pieces.append(JOB_DATA.pack(position=position + len(data), bytes=len(piece), count=len(contents)))
            data += piece
            begin = window.position - HEADER_BYTES
            header = {f"window_{key}": value for key, value in WINDOW.unpack(raw, begin)._asdict().items()}
            windows.append(JOB_WINDOW.pack(position=begin, taken=len(contents), data=1, **header))
        text = raw[TEXT_BYTES : TEXT_BYTES + head.text_bytes]
        rows = (calls or {}).get(path.name, np.empty(0, JOB_CALL.dtype))
        parts.append((path.name, raw[: SPOOL.size], text, windows, pieces, rows, bool(summary)))
    shared = parts[0][2][:SHARED_BYTES]
    records = b"".join(
        _record(coder, b"" if number == 0 else shared, *part) for number, part in enumerate(parts)
    )
    coded = coder.text(b"", summary)
    summary_at = position + len(data)
    data += coded
    head = {
        "magic": CONSTANTS["ENSIO_JOB_MAGIC"],
        "version": CONSTANTS["ENSIO_JOB_VERSION"],
        "event_bytes": EVENT.size,
        "spool_version": CONSTANTS["ENSIO_SPOOL_VERSION"],
        "processes": len(parts),
        "bytes": position + len(data) + len(records),
        "records": position + len(data),
        "shared_bytes": len(shared),
        "summary": summary_at if summary else 0,
        "summary_coded": len(coded),
        "summary_checksum": zlib.crc32(coded),
        "summary_bytes": len(summary),
    }
    copy = with_sum(coder.text(b"", shared)) if len(parts) > 1 else b""
    to.write_bytes(with_head(head) + data + records + copy)
    return to


def with_sum(coded: bytes) -> bytes:
    return zlib.crc32(coded).to_bytes(4, "little") + coded


def with_head(head) -> bytes:
    """The head of a job file with its sum."""
    raw = JOB.pack(**head)
    return JOB.pack(**head | {"checksum": zlib.crc32(raw[: JOB.dtype.fields["checksum"][1]])})


def _record(coder, shared, name, head, text, windows, pieces, rows, summarised) -> bytes:
    coded = with_sum(coder.text(shared, text)) if text else b""
    body = name.encode() + b"".join(windows) + b"".join(pieces) + rows.tobytes()
    tail = body + coded
    members = {
        "magic": CONSTANTS["ENSIO_JOB_PROCESS_MAGIC"],
        "bytes": JOB_PROCESS.size + len(tail),
        "name_bytes": len(name.encode()),
        "text_bytes": len(text),
        "coded_bytes": len(coded),
        "windows": len(windows),
        "data": len(pieces),
        "calls": len(rows),
        "summarised": int(summarised),
    }
    start = JOB_PROCESS.size - SPOOL.size
    record = JOB_PROCESS.pack(**members)[:start] + head + tail
    checked = JOB_PROCESS.dtype.fields["name_bytes"][1]
    members["checksum"] = zlib.crc32(record[checked : len(record) - len(coded)])
    return JOB_PROCESS.pack(**members)[:start] + head + tail


def packed_summary(summary: CellSummary, call_numbers: Mapping[int, int], origin_unix_ns: int) -> bytes:
    """A summary as job files have it, uncoded; `call_numbers`: of each of its calls, the number there."""
    cells = np.zeros(len(summary), JOB_CELL.dtype)
    own = summary.cells
    for name in (
        "size_class",
        "ordinal_class",
        "count",
        "errors",
        "moved",
        "time_ns",
        "inner_ns",
        "min_ns",
        "max_ns",
    ):
        cells[name] = own[name]
    for name in ("without_bin", "min_requested", "max_requested", "mean_ns", "m2", "m3", "m4"):
        cells[name] = own[name]
    cells["call"] = [call_numbers[number] for number in own["call"].tolist()]
    cells["nested_count"] = own["count"] - own["outer_count"]
    cells["nested_ns"] = own["time_ns"] - own["outer_ns"]
    cells["carried_moved"] = own["moved"] - own["outer_moved"]
    cells["first_start_ns"] = own["start_ns"] + origin_unix_ns
    cells["last_end_ns"] = own["end_ns"] + origin_unix_ns
    blocks: list[np.ndarray] = []
    for cell, place, count in zip(*(part.tolist() for part in summary.histogram), strict=True):
        octave, column = divmod(place, CONSTANTS["ENSIO_BLOCK_BINS"])
        if not cells["blocks"][cell, octave]:
            blocks.append(np.zeros(CONSTANTS["ENSIO_BLOCK_BINS"], "u8"))
            cells["blocks"][cell, octave] = len(blocks)
        blocks[cells["blocks"][cell, octave] - 1][column] = count
    owners, longest = summary.longest
    for i, cell in enumerate(owners.tolist()):
        entry = cells["largest"][cell, cells["longest"][cell]]
        cells["longest"][cell] += 1
        for name in ("offset", "requested", "rank", "file", "thread", "depth"):
            entry[name] = getattr(longest, name)[i]
        entry["flags"] = longest.carried[i]
        entry["moved"] = longest.moved[i] if longest.moved[i] >= 0 else -int(longest.error[i])
        entry["start_ns"] = longest.start[i] + origin_unix_ns
        entry["duration_ns"] = longest.duration[i]
    texts = b""
    for number in np.unique(longest.file[longest.file > 0]).tolist():
        path = summary.files[number].encode()
        texts += TEXT.pack(kind=CONSTANTS["ENSIO_TEXT_FILE"], id=number, length=len(path)) + path
        texts += bytes(-len(path) % 8)
    counts = b"".join(block.tobytes() for block in blocks)
    head = JOB_SUMMARY.pack(processes=1, cells=len(cells), blocks=len(blocks), text_bytes=len(texts))
    return head + cells.tobytes() + counts + texts


def as_before_sums(content: bytes) -> bytes:
    """A job file of one process as version 3 had it, but for its head: texts behind the name, without sum."""
    at = JOB.unpack(content).records
    process = JOB_PROCESS.unpack(content, at)
    start, end = at + JOB_PROCESS.size + process.name_bytes, len(content) - process.coded_bytes
    texts = content[end + 4 :]
    members = {**process._asdict(), "bytes": process.bytes - 4, "coded_bytes": len(texts)}
    record = JOB_PROCESS.pack(**members) + content[at + JOB_PROCESS.size : start] + texts + content[start:end]
    checked = JOB_PROCESS.dtype.fields["name_bytes"][1]
    members["checksum"] = zlib.crc32(record[checked:])
    return content[:at] + JOB_PROCESS.pack(**members) + record[JOB_PROCESS.size :]
