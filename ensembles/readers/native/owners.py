"""Whose files in a run directory are read.

Where nobody but its owner can put files into a directory, all that is in it is the owner's doing. Where
others can, only one user's files are read: the reader's; where there are none, those of the directory's
owner; where there are none either, those of one other user, with a note.
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
    """Files of a directory.

    Attributes
    ----------
    paths : list of str
        Those to read.
    owner : int or None
        Whose they are; None: all are read, whose they may be.
    notes : list of str
        Which are not read, in plain sentences.
    """

    paths: list[str]
    owner: int | None
    notes: list[str]

    def includes(self, path: str) -> bool:
        """Whether another file of the directory is to be read beside them."""
        return self.owner is None or _owners(path) <= {self.owner, os.geteuid()}


def choose(directory: str, paths: Sequence[str]) -> Chosen:
    """Choose the files to read among `paths`, which lie in `directory`.

    Raises
    ------
    OSError
        The directory is not there any more.
    """
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
            f"what lies in {directory} belongs to user {user_name(owner)}, neither to its owner nor to you, "
            "and others can write to it: see that it is the run you mean"
        )
    else:
        owner = -1
    foreign = Counter(min(users - {owner}) for users in owners.values() if users != {owner})
    notes += few(
        [
            f"{count} file{'s' * (count > 1)} of user {user_name(user)} in {directory} "
            f"{'are' if count > 1 else 'is'} left out, for others than its owner can write to it: to read "
            "such a file, name the file itself"
            for user, count in sorted(foreign.items())
        ],
        "users have files there",
    )
    return Chosen([path for path in paths if owners.get(path, {owner}) == {owner}], owner, notes)


def user_name(number: int) -> str:
    """The name of a user, or where there is none the number."""
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)


def _owners(path: str) -> set[int]:
    """The owner of a file; of a link, its owner and that of the file that it leads to, if there is one; of
    what is not there any more, nobody."""
    found = set()
    for look in (os.lstat, os.stat):
        with suppress(OSError):
            found.add(look(path).st_uid)
    return found
