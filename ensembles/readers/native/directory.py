"""Find run directories, and the records in them that are read.

If ``ENSIO_DIR`` names a folder that is not safe to record into, the recorder makes a run directory inside it.
The readers find that directory too.

`cut_spools` finishes spools after their processes have ended.
"""

from __future__ import annotations

import os
import pwd
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ensembles.files.names import JOB_FILE_SUFFIX, RECORDS, TRACE_FILE
from ensembles.files.untrusted import OTHERS_WRITE, Reading
from ensembles.model.c_layout import ACCOUNT, CONSTANTS, SPOOL
from ensembles.model.errors import EnsioError, SeveralRuns
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import MOST_NAMED, few
from ensembles.readers.native.account import (
    ACCOUNT_POSITION,
    CHILDREN,
    EXITED,
    TAKEN,
    io_counters,
    sum_of_account,
)
from ensembles.readers.native.spool import read_spool


def run_directory_at(path: str) -> str:
    """Find the run directory that a folder is or contains."""
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
        found = sorted(found, key=lambda path: (-os.stat(path).st_mtime_ns, path))
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


def _listed(paths: list[str]) -> str:
    """List the first directories, with their owners if these are other users."""
    words = []
    for path in paths[:MOST_NAMED]:
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
    """List spools and job files without those of untrusted users (`ensembles.readers.native.directory`)."""
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


class Chosen(NamedTuple):
    """The files of a directory to read."""

    paths: list[str]  # Files to read
    owner: int | None  # User id of their owner; None: the owner does not matter
    notes: list[str]  # Sentences about files that are not read

    def includes(self, path: str) -> bool:
        """Test whether a further file of the directory may be read too."""
        return self.owner is None or _owners(path) <= {self.owner, os.geteuid()}


def choose(directory: str, paths: Sequence[str]) -> Chosen:
    """Choose the files to read."""
    status = os.stat(directory)
    if not paths or not status.st_mode & OTHERS_WRITE:
        return Chosen(list(paths), None, [])
    owners = {path: users for path in paths if (users := _owners(path))}
    everyone = set().union(*owners.values())
    known = [user for user in (os.geteuid(), status.st_uid) if user in everyone]
    notes = []
    if known:
        owner = known[0]
    elif len(everyone) == 1:
        (owner,) = everyone
        notes.append(
            f"the files in {directory} belong to user {user_name(owner)}, neither to its owner nor to you, "
            "and other users can write to it: make sure that this is the run you mean"
        )
    else:
        owner = -1
    foreign = Counter(min(users - {owner}) for users in owners.values() if users != {owner})
    notes += few(
        [
            f"{count} file{'s' * (count > 1)} of user {user_name(user)} in {directory} "
            f"{'are' if count > 1 else 'is'} left out, because other users can make files in this folder: "
            "to read such a file, name the file itself"
            for user, count in sorted(foreign.items())
        ],
        "users have files there",
    )
    return Chosen([path for path in paths if owners.get(path, {owner}) == {owner}], owner, notes)


def user_name(number: int) -> str:
    """Return the name of a user, or the id if there is no name."""
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)


def _owners(path: str) -> set[int]:
    """Return the owner of a file, and of the target of a link; empty if the file does not exist any more."""
    found = set()
    for look in (os.lstat, os.stat):
        with suppress(OSError):
            found.add(look(path).st_uid)
    return found


_CHILDREN_FAULTS = 8
"""Place of `cminflt` behind the name of the process in /proc/PID/stat; its exit code is the last."""


def cut_spools(directory: Path) -> None:
    """Cut the spools of ended processes to their content.

    A process that has given up its privileges cannot shorten its spool, nor remove the space counter of its
    node. Spools of processes that are still running or were killed are not changed. Files that cannot be read
    or changed are skipped.
    """
    all_ended = True
    for path in directory.glob("*.spool"):
        try:
            spool = read_spool(os.fspath(path))
            all_ended &= spool.ended
            if spool.ended and spool.status.st_size > spool.head.allocated_bytes:
                descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    os.ftruncate(descriptor, spool.head.allocated_bytes)
                finally:
                    os.close(descriptor)
        except (OSError, EnsioError):
            all_ended = False
    if all_ended:
        for path in directory.glob(".*.taken"):
            with suppress(OSError):
                path.unlink()


def complete_account(path: Path, pid: int, end: tuple[int, int, int]) -> None:
    """Complete the spool of a process that waits to be reaped, if its recording has no end.

    The reading of the clock goes to where the recorder's next one would: `end` holds the processor's counter,
    CLOCK_MONOTONIC and CLOCK_REALTIME at the end of the process.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "r+b", buffering=0) as file:
        spool = read_spool(os.fspath(path))
        if spool.ended:
            return
        is_spare = not spool.head.last_is_spare
        ticks = end[spool.head.clock == CONSTANTS["ENSIO_CLOCK_MONOTONIC"]]
        file.seek(SPOOL.field_offset("spare" if is_spare else "last"))
        file.write(struct.pack("=3Q", ticks, *end[1:]))
        file.seek(SPOOL.field_offset("last_is_spare"))
        file.write(struct.pack("=I", is_spare))
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        facts = TAKEN | (CHILDREN if int(stat[_CHILDREN_FAULTS]) else 0)
        facts |= 0 if os.WIFSIGNALED(int(stat[-1])) else EXITED
        file.seek(ACCOUNT_POSITION)
        account = ACCOUNT.unpack(file.read(ACCOUNT.size))
        counters, _ = io_counters(Path(f"/proc/{pid}/io").read_bytes())
        account = account._replace(**counters)
        account = account._replace(facts=account.facts & 0xFFFFFFFF | facts | sum_of_account(account) << 32)
        file.seek(ACCOUNT_POSITION)
        file.write(struct.pack(f"={len(account)}Q", *account))
