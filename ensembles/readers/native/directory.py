"""Find run directories, and the records in them that are read.

If ``ENSIO_DIR`` names a folder that is not safe to record into, the recorder makes a run directory inside it.
The readers find that directory too.
"""

from __future__ import annotations

import os

from ensembles.files.names import JOB_FILE_SUFFIX, RECORDS, TRACE_FILE
from ensembles.files.untrusted import Reading
from ensembles.model.errors import SeveralRuns
from ensembles.model.sanitize_text import sanitize_text
from ensembles.readers.native.owners import Chosen, choose, user_name

_MOST_LISTED = 5


def run_directory_at(path: str) -> str:
    """Find the run directory that a folder is or contains.

    Returns
    -------
    str
        The one readable run directory in `path`, if `path` itself contains no record. Else `path`.
    """
    try:
        if holds_record(path):
            return path
        with os.scandir(path) as entries:
            found = [
                entry.path
                for entry in entries
                if not entry.name.startswith(".")
                and entry.is_dir(follow_symlinks=False)
                and os.access(entry.path, os.R_OK | os.X_OK)
                and holds_record(entry.path)
            ]
    except OSError:
        return path  # opening the path reports the error
    if len(found) > 1:
        found = _newest_first(found)
        raise SeveralRuns(f"{path} holds {len(found)} runs, name one of them: {_listed(found)}", found)
    return found[0] if found else path


def resolve_run_directory(path: str) -> str:
    """Find a run directory as `run_directory_at`, and log a warning if it is not `path` itself."""
    found = run_directory_at(path)
    if found != path:
        import logging

        sentence = f"{path} contains no record; reading its only run, {found}"
        logging.getLogger("ensembles").warning("ensio: %s", sanitize_text(sentence))
    return found


def holds_record(path: str) -> bool:
    """Whether a folder holds a spool, a job file or a ``trace.h5``."""
    try:
        with os.scandir(path) as entries:
            return any(entry.name.endswith(RECORDS) or entry.name == TRACE_FILE for entry in entries)
    except OSError:
        return False


def _newest_first(paths: list[str]) -> list[str]:
    statuses = {path: os.stat(path) for path in paths}
    return sorted(paths, key=lambda path: (-statuses[path].st_mtime_ns, path))


def _listed(paths: list[str]) -> str:
    """List the first directories, with their owners if these are other users."""
    words = []
    for path in paths[:_MOST_LISTED]:
        owner = os.stat(path).st_uid
        words.append(path if owner == os.geteuid() else f"{path} (of {user_name(owner)})")
    more = len(paths) - len(words)
    return ", ".join(words) + (f", and {more} more" if more else "")


def lies_elsewhere(path: str) -> bool:
    """Test whether a spool is a link to a node-local folder (``ENSIO_SPOOL``) of another node."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return os.path.islink(path) and os.path.isabs(os.readlink(path))
    except OSError:
        pass  # its reader says why
    return False


def chosen_records(directory: str) -> Chosen:
    """List spools and job files without those of untrusted users (`ensembles.readers.native.owners`)."""
    with Reading(directory):
        return choose(directory, record_paths(directory))


def record_paths(directory: str) -> list[str]:
    """List the spools and then the job files in a directory, each sorted by name."""
    with Reading(directory), os.scandir(directory) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(RECORDS))
    names.sort(key=lambda name: name.endswith(JOB_FILE_SUFFIX))
    return [os.path.join(directory, name) for name in names]


def identity(status: os.stat_result) -> tuple[int, int]:
    """Size in bytes and time of change in ns of a spool, which differ once it has changed."""
    return status.st_size, status.st_mtime_ns
