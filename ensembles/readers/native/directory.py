"""Open the spools and job files of a run directory as one run.

If ``ENSIO_DIR`` names a folder that is not safe to record into, the recorder makes a run directory inside it.
The readers find that directory too.
"""

from __future__ import annotations

import os

from ensembles.files.names import JOB_FILE_SUFFIX, RECORDS, TRACE_FILE
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text
from ensembles.readers.native.owners import Chosen, choose, user_name

PREFIX = "ensio-"
"""Prefix of the names of run directories that the recorder chooses."""

_MOST_LISTED = 5


def run_directory_at(path: str) -> str:
    """Find the run directory that a folder is or contains.

    Parameters
    ----------
    path : str

    Returns
    -------
    str
        The one readable run directory in `path` with a name of the recorder, if `path` itself contains no
        record. Else `path`.

    Raises
    ------
    EnsioError
        There are several run directories. The message lists the newest ones.
    """
    try:
        if holds_record(path):
            return path
        with os.scandir(path) as entries:
            found = [
                entry.path
                for entry in entries
                if entry.name.startswith(PREFIX)
                and entry.is_dir(follow_symlinks=False)
                and os.access(entry.path, os.R_OK | os.X_OK)
                and holds_record(entry.path)
            ]
    except OSError:
        return path  # opening the path reports the error
    if len(found) > 1:
        raise EnsioError(f"{path} holds {len(found)} runs, name one of them: {_listed(found)}")
    return found[0] if found else path


def resolve_run_directory(path: str) -> str:
    """Find a run directory as `run_directory_at`, and log a warning if it is not `path` itself.

    Parameters
    ----------
    path : str

    Returns
    -------
    str

    Raises
    ------
    EnsioError
        There are several run directories.
    """
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


def _listed(paths: list[str]) -> str:
    """List the newest directories, with their owners if these are other users."""
    statuses = {path: os.stat(path) for path in paths}
    newest = sorted(paths, key=lambda path: (-statuses[path].st_mtime_ns, path))
    words = []
    for path in newest[:_MOST_LISTED]:
        owner = statuses[path].st_uid
        words.append(path if owner == os.geteuid() else f"{path} (of {user_name(owner)})")
    more = len(paths) - len(words)
    return ", ".join(words) + (f", and {more} more" if more else "")


def open_spool(path: str) -> SpoolSource:
    """Open a single spool as a run.

    Parameters
    ----------
    path : str

    Returns
    -------
    SpoolSource

    Raises
    ------
    EnsioError
        The file cannot be read or is not a valid spool.
    """
    return SpoolSource([read_spool(path)])


def open_job_file(path: str) -> SpoolSource:
    """Open a single job file as a run.

    Parameters
    ----------
    path : str

    Returns
    -------
    SpoolSource

    Raises
    ------
    EnsioError
        The file cannot be read or is not a valid job file.
    """
    return SpoolSource(job_file.read_job_file(path))


def open_run_directory(path: str) -> SpoolSource:
    """Open all spools and job files in a directory as one run.

    A spool contains everything that its process recorded. It takes precedence over the job file's record of
    the same process, because the process may have written to the spool later.

    Parameters
    ----------
    path : str

    Returns
    -------
    SpoolSource
        Its notes name the files that cannot be read.

    Raises
    ------
    EnsioError
        The directory cannot be read or has no readable spool or job file.
    """
    spools: dict[str, Spool] = {}
    collected: dict[str, Spool] = {}
    failures: list[tuple[str, str]] = []
    paths, _, foreign = chosen_records(path)
    elsewhere = [record_path for record_path in paths if lies_elsewhere(record_path)]
    for record_path in paths:
        if record_path in elsewhere:
            continue
        try:
            if record_path.endswith(JOB_FILE_SUFFIX):
                collected.update((spool.name, spool) for spool in job_file.read_job_file(record_path))
            else:
                spools[os.path.basename(record_path)] = read_spool(record_path)
        except EnsioError as error:
            failures.append((record_path, str(error)))
    # A spool that disappeared in the meantime is in the job file by now.
    sentences = [
        sentence
        for place, sentence in failures
        if os.path.basename(place) not in collected or os.path.lexists(place)
    ]
    sentences = [*foreign, *sentences, *_notes_on_other_nodes(elsewhere, path)]
    for name in collected.keys() & spools.keys():
        spools[name].leave_to(collected[name])
    everything = list((collected | spools).values())
    if not everything:
        if len(sentences) == 1:
            raise EnsioError(sentences[0])
        if sentences:
            count = len(record_paths(path))
            raise EnsioError(f"none of the {count} spools in {path} can be read: {sentences[0]}")
        raise EnsioError(f"{path} is not a run directory: there is no spool in it")
    return SpoolSource(everything, few(sentences, "spools cannot be read"))


def lies_elsewhere(path: str) -> bool:
    """Test whether a spool is a dangling link to a node-local folder (``ENSIO_SPOOL``) of another node."""
    return os.path.islink(path) and not os.path.exists(path)


def _notes_on_other_nodes(links: Sequence[str], directory: str) -> list[str]:
    """Describe the spools on other nodes, one sentence per folder."""
    places = Counter(
        (os.path.basename(link).rsplit("-", 2)[0], os.path.dirname(os.readlink(link))) for link in links
    )
    return [
        f"the spools of {count} process{'es' * (count > 1)} on host {host} lie in {folder} on that host "
        f"and cannot be reached from here, their calls are missing: copy them from there to {directory}"
        for (host, folder), count in places.items()
    ]


def chosen_records(directory: str) -> Chosen:
    """List spools and job files without those of untrusted users (`ensembles.readers.native.owners`).

    Parameters
    ----------
    directory : str

    Returns
    -------
    Chosen

    Raises
    ------
    EnsioError
        The directory cannot be read.
    """
    try:
        return choose(directory, record_paths(directory))
    except OSError as error:
        raise EnsioError(f"{directory} cannot be read: {error.strerror}") from error


def record_paths(directory: str) -> list[str]:
    """List the spools and then the job files in a directory, each sorted by name.

    Parameters
    ----------
    directory : str

    Returns
    -------
    list of str
        Paths.

    Raises
    ------
    EnsioError
        The directory cannot be read.
    """
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(RECORDS))
    except OSError as error:
        raise EnsioError(f"{directory} cannot be read: {error.strerror}") from error
    names.sort(key=lambda name: name.endswith(JOB_FILE_SUFFIX))
    return [os.path.join(directory, name) for name in names]


def identity(status: os.stat_result) -> tuple[int, int]:
    """Size in bytes and time of change in ns of a spool, which differ once it has changed."""
    return status.st_size, status.st_mtime_ns
