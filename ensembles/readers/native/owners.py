"""Choose the files of a run directory by their owners.

If only its owner can write to a directory, all files in it are read. If other users can, only the files of
one user are read: of the user who reads; else of the owner of the directory; else of a single other user,
with a note.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ensembles.model.units import few

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Chosen(NamedTuple):
    """The files of a directory to read.

    Attributes
    ----------
    paths : list of str
        Files to read.
    owner : int or None
        User id of their owner; None: the owner does not matter.
    notes : list of str
        Sentences about files that are not read.
    """

    paths: list[str]
    owner: int | None
    notes: list[str]

    def includes(self, path: str) -> bool:
        """Test whether a further file of the directory may be read too."""
        return self.owner is None or _owners(path) <= {self.owner, os.geteuid()}


def choose(directory: str, paths: Sequence[str]) -> Chosen:
    """Choose the files to read."""
    status = os.stat(directory)
    if not paths or not status.st_mode & _OTHERS_WRITE:
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
            f"{'are' if count > 1 else 'is'} left out, because other users than its owner can write to it: "
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
