"""Whether a run that is followed has ended: its processes ended their recording, or are gone."""

from __future__ import annotations

import os
import socket

from ensembles.model.metadata import Process
from ensembles.run.run import Run


def gone_without_end(run: Run) -> int | None:
    """Count the processes that are gone without having ended their recording.

    Processes of other machines that did not end their recording may still run.

    Returns
    -------
    int or None
        None: a process still runs, as far as this machine knows.

    Examples
    --------
    >>> from ensembles.run.ended import gone_without_end
    >>> gone_without_end(en.open("ensio-ior"))
    0
    """
    open_ones = [process for process in run.info.processes if not process.ended]
    return len(open_ones) if all(map(_is_gone, open_ones)) else None


def _is_gone(process: Process) -> bool:
    """Whether a process of this machine is gone, or waits for its parent to take notice of its end."""
    if process.host != socket.gethostname() or not os.path.exists("/proc/self/stat"):
        return False
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:
            # The name in brackets may have any characters; the state follows it.
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except FileNotFoundError:
        return True
    except OSError:
        return False
