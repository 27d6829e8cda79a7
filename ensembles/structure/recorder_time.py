"""Time that the recorder itself takes where it reads lines of Python."""

from __future__ import annotations

from collections.abc import Mapping

from ensembles.model.units import seconds_text

PYTHON_LINES_S = (6e-6, 15e-6)
"""Time by which a call is longer with ``ENSIO_PYTHON_LINES``: without functions of a library between the line
and the call, and with three of them (docs/user/settings.md)."""

LEAST_SHARE = 0.01
"""Part of the run, for a task, from which this is worth a sentence."""


def reads_python_lines(environment: Mapping[str, str]) -> bool:
    """Whether the recorder read lines of Python, by the environment of a run."""
    return environment.get("ENSIO_PYTHON_LINES", "0") not in ("", "0")


def python_lines_text(environment: Mapping[str, str], calls: int, tasks: int, run_s: float) -> str:
    """Say what lines of Python cost; ``""`` if they were not read, or cost next to nothing.

    Examples
    --------
    >>> from ensembles.structure.recorder_time import python_lines_text
    >>> python_lines_text({"ENSIO_PYTHON_LINES": "1"}, 100_000, 1, 4.0)
    'lines of Python: the recorder took about 6 to 15 µs for each of 100,000 calls, 600 ms to 1.50 s in all, \
which is in the times between calls and of calls around others, such as H5Dread'
    >>> python_lines_text({}, 100_000, 1, 4.0)
    ''
    """
    low_s, high_s = (each_s * calls for each_s in PYTHON_LINES_S)
    if not reads_python_lines(environment) or low_s < LEAST_SHARE * run_s * max(tasks, 1):
        return ""
    return (
        f"lines of Python: the recorder took about 6 to 15 µs for each of {calls:,} calls, "
        f"{seconds_text(low_s)} to {seconds_text(high_s)} in all, which is in the times between calls and of "
        "calls around others, such as H5Dread"
    )
