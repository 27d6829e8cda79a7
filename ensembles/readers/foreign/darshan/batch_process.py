"""The process that reads the counters of many Darshan logs, each in a child process.

It loads Darshan's library once; the first frame (`frames`) says whether that works. For each path on standard
input (a length of four bytes, then the path) it forks: a damaged log ends only the child. The child collects
the frames of its log, and writes them after the library has done its work; a frame ``end`` or ``error`` is
the last.
"""

from __future__ import annotations

import gc
import io
import os
import struct
import sys

from ensembles.readers.foreign.darshan.header import open_header, write_frame
from ensembles.readers.foreign.darshan.library import Log, error_frame, warm_up
from ensembles.readers.foreign.darshan.sandbox_process import limit, write_counters, write_job

COUNTED = ("MPI-IO", "DFS", "DAOS", "POSIX", "STDIO")


def main() -> int:
    """Read paths until the end of standard input."""
    try:
        warm_up()
    except Exception as error:
        write_frame(sys.stdout.buffer, error_frame("", error))
        return 1
    write_frame(sys.stdout.buffer, {"kind": "ready"})
    gc.freeze()  # a collection in a child would copy every page
    source = sys.stdin.buffer
    while len(head := source.read(4)) == 4:
        path = os.fsdecode(source.read(struct.unpack("<I", head)[0]))
        child = os.fork()
        if child == 0:
            _read(path)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            write_frame(sys.stdout.buffer, {"kind": "error", "text": _ended(path)})
    return 0


def _ended(path: str) -> str:
    return f"{path} is damaged: Darshan's library failed on it"


def _read(path: str) -> None:
    out = io.BytesIO()
    try:
        header, size_bytes = open_header(path), os.stat(path).st_size
        limit(size_bytes, header)
        log = Log(path)
        write_counters(log, write_job(log, header, out), COUNTED, out, size_bytes)
        write_frame(out, {"kind": "end"})
    except Exception as error:
        out = io.BytesIO()
        write_frame(out, error_frame(path, error))
    # After a crash of the library nothing of a log is written: the frames of others stay whole.
    sys.stdout.buffer.write(out.getbuffer())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
