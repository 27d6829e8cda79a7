"""Permissions of files that are made from a run: only users who can read the run can read them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ensembles.files.names import RECORDS, split_launch


class Readership(NamedTuple):
    """Who may read a file, in addition to its owner."""

    group: int | None = None  # Id of the group that may read it; None: no group
    everyone: bool = False  # Whether all users may read it

    def mode(self, group: int) -> int:
        """Return the mode of a file that belongs to a group, before the umask; only the owner may write."""
        if self.everyone:
            return 0o644
        return 0o640 if self.group == group else 0o600

    def folder_mode(self, group: int) -> int:
        """Return the mode of a folder that belongs to a group, before the umask."""
        mode = self.mode(group)
        return mode | (mode & 0o444) >> 2


OWNER = Readership()
"""Only the owner may read."""


def find_readership(path: str | os.PathLike[str]) -> Readership:
    """Determine who may read a file that is made from a run.

    A user may read it who can read the folder of the run and every recorded file in it. In a folder of
    another tool, all files count whose names do not begin with a dot. A group may read it if all of these
    belong to the group.
    """
    try:
        return _common(list(_statuses(split_launch(os.fspath(path))[0])))
    except OSError:
        return OWNER


def umask() -> int:
    """Return the umask of this process."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _statuses(path: str) -> Iterator[os.stat_result]:
    """Yield the status of the run's folder and of the files in it, or of its file."""
    status = os.stat(path)
    yield status
    if not stat.S_ISDIR(status.st_mode):
        return
    names = [name for name in os.listdir(path) if not name.startswith(".")]
    recorded = [name for name in names if name.endswith(RECORDS)]
    for name in recorded or names:
        # A dangling link is a spool on another node, which cannot be read here.
        with suppress(FileNotFoundError):
            yield os.stat(os.path.join(path, name))


def _common(statuses: Iterable[os.stat_result]) -> Readership:
    """Return who can read all of these."""
    groups, group_reads, everyone = set(), True, True
    for status in statuses:
        needed = 0o5 if stat.S_ISDIR(status.st_mode) else 0o4
        groups.add(status.st_gid)
        group_reads &= status.st_mode >> 3 & needed == needed
        everyone &= status.st_mode & needed == needed
    if not group_reads:
        return OWNER
    return Readership(groups.pop() if len(groups) == 1 else None, everyone)
