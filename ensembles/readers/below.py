"""Run directories below a folder that is none itself.

Where ``ENSIO_DIR`` names a folder that is not safe to record into, the recorder makes a run directory below
it.
"""

from __future__ import annotations

import os

from ensembles.errors import EnsioError
from ensembles.printable import printable
from ensembles.readers.filenames import RECORDS, TRACE_FILE
from ensembles.readers.owners import user_name

PREFIX = "ensio-"
"""How the names of run directories begin that the recorder chooses."""

_MOST_LISTED = 5


def run_directory_at(path: str) -> str:
    """The run directory that a folder is or holds: `path` itself, unless it holds no record and exactly one
    run directory of the recorder's naming that this user can read.

    Raises
    ------
    EnsioError
        It holds several of them; the sentence lists the newest.
    """
    try:
        if _holds_record(path):
            return path
        with os.scandir(path) as entries:
            found = [
                entry.path
                for entry in entries
                if entry.name.startswith(PREFIX)
                and entry.is_dir(follow_symlinks=False)
                and os.access(entry.path, os.R_OK | os.X_OK)
                and _holds_record(entry.path)
            ]
    except OSError:
        return path  # whoever opens it finds out and says so
    if len(found) > 1:
        raise EnsioError(f"{path} holds {len(found)} runs, name one of them: {_listed(found)}")
    return found[0] if found else path


def told_run_directory_at(path: str) -> str:
    """`run_directory_at`, which says so if it is not `path` itself.

    Raises
    ------
    EnsioError
        There are several.
    """
    found = run_directory_at(path)
    if found != path:
        import logging

        sentence = f"{path} holds no record itself; this is its one run, {found}"
        logging.getLogger("ensembles").warning("ensio: %s", printable(sentence))
    return found


def _holds_record(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return any(entry.name.endswith(RECORDS) or entry.name == TRACE_FILE for entry in entries)
    except OSError:
        return False


def _listed(paths: list[str]) -> str:
    """The newest first, at most a handful, with their owners where these are others."""
    statuses = {path: os.stat(path) for path in paths}
    newest = sorted(paths, key=lambda path: (-statuses[path].st_mtime_ns, path))
    words = []
    for path in newest[:_MOST_LISTED]:
        owner = statuses[path].st_uid
        words.append(path if owner == os.geteuid() else f"{path} (of {user_name(owner)})")
    more = len(paths) - len(words)
    return ", ".join(words) + (f", and {more} more" if more else "")
