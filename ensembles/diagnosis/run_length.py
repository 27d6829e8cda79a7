"""The length of a run: what shares of it, and so severities, are shares of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensembles.run.run import Run


def run_length_s(run: Run, span_s: float) -> float:
    """Return the length of a run, in seconds: from the start of its first process to the end of its last.

    Parameters
    ----------
    run : Run
    span_s : float
        From the first I/O call to the end of the last: the length, if that of the processes is not known or
        not as long.

    Examples
    --------
    >>> from ensembles.diagnosis.run_length import run_length_s
    >>> run_length_s(en.open("ensio-ior"), 1e6)
    1000000.0
    """
    ends = [(process.start_unix_ns, process.end_unix_ns) for process in run.info.processes]
    known = [(start, end) for start, end in ends if 0 < start < end]
    if not known:
        return span_s
    return max((max(end for _, end in known) - min(start for start, _ in known)) * 1e-9, span_s)
