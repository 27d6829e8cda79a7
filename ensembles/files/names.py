"""Names of the files in a run directory."""

import os
import re

SPOOL_SUFFIX = ".spool"
JOB_FILE_SUFFIX = ".ensio"

RECORDS = (SPOOL_SUFFIX, JOB_FILE_SUFFIX)
"""Suffixes of the files that the recorder writes."""

LAUNCHER_SUFFIX = ".launcher"
"""Suffix of the file in which ``ensio run`` keeps what the kernel counted in a shell or launcher."""

TRACE_FILE = "trace.h5"
"""The trace file, which readers make of the recorder's files."""

_LAUNCH = re.compile(r"(.+)#([1-9][0-9]{0,8})", re.DOTALL)


def process_file_of(spool: str) -> str:
    """Return the path of the job file that a process makes of its spool at its end.

    Examples
    --------
    >>> process_file_of("run/node1-42-7.spool")
    'run/node1-42-7.ensio'
    """
    return spool.removesuffix(SPOOL_SUFFIX) + JOB_FILE_SUFFIX


def split_launch(path: str) -> tuple[str, int]:
    """Split the name of a run in a directory that several launches recorded into.

    `path`: the directory, or `path` itself if it exists or ends in no number.
    `launch`: number of the launch, from 1; 0: none is named.

    Examples
    --------
    >>> split_launch("runs/of-today")
    ('runs/of-today', 0)
    """
    match = _LAUNCH.fullmatch(os.fspath(path))
    if match is None or os.path.lexists(path) or not os.path.isdir(match[1]):
        return path, 0
    return match[1], int(match[2])
