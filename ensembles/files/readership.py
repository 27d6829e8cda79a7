"""Who may read a file that is made from a run: those who can read the run, and nobody else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ensembles.files.names import RECORDS


class Readership(NamedTuple):
    """Who may read a file beside its owner.

    Attributes
    ----------
    group : int or None
        The number of the group that may; None: no group.
    everyone : bool
    """

    group: int | None = None
    everyone: bool = False

    def mode(self, group: int) -> int:
        """The mode of a file of this group, before the umask: its owner alone writes to it."""
        if self.everyone:
            return 0o644
        return 0o640 if self.group == group else 0o600

    def folder_mode(self, group: int) -> int:
        """The same of a folder."""
        mode = self.mode(group)
        return mode | (mode & 0o444) >> 2


OWNER = Readership()
"""Nobody but the owner."""


def find_readership(path: str | os.PathLike[str]) -> Readership:
    """Who may read what is made from the run at `path`.

    Those who can read the run: its folder and what was recorded into it, or if that is another tool's, every
    file in it without a dot before its name. A group can only if all of them belong to it. Where nothing can
    be found out, it is the owner alone.
    """
    try:
        return _common(list(_statuses(os.fspath(path))))
    except OSError:
        return OWNER


def umask() -> int:
    """What this process takes from the modes of new files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _statuses(path: str) -> Iterator[os.stat_result]:
    """Of the run's folder and of what is in it, or of its file."""
    status = os.stat(path)
    yield status
    if not stat.S_ISDIR(status.st_mode):
        return
    names = [name for name in os.listdir(path) if not name.startswith(".")]
    recorded = [name for name in names if name.endswith(RECORDS)]
    for name in recorded or names:
        # A link that leads nowhere is a spool of another node: nothing of it can be read here.
        with suppress(FileNotFoundError):
            yield os.stat(os.path.join(path, name))


def _common(statuses: Iterable[os.stat_result]) -> Readership:
    """Who can read all of them."""
    groups, group_reads, everyone = set(), True, True
    for status in statuses:
        needed = 0o5 if stat.S_ISDIR(status.st_mode) else 0o4
        groups.add(status.st_gid)
        group_reads &= status.st_mode >> 3 & needed == needed
        everyone &= status.st_mode & needed == needed
    if not group_reads:
        return OWNER
    return Readership(groups.pop() if len(groups) == 1 else None, everyone)
