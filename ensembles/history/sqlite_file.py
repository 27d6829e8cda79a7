"""The file of a history in SQLite: who may read it, and how it is opened.

The journal is write-ahead: readers and one writer work at the same time. A reader of such a file takes its
locks in a second file, ``-shm``, which SQLite makes beside the first. A user who may not write makes none:
another user's file would keep the writers out.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from urllib.parse import quote

from ensembles.files.atomic_write import made_by_another
from ensembles.files.readership import Readership, umask
from ensembles.files.untrusted import Reading, check_regular

BUSY_S = 120
"""How long a writer waits for others of the same database."""


class SqliteFile:
    """A file of SQLite, which need not exist."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        self._all = [self._path + suffix for suffix in ("", "-wal", "-shm", "-journal")]

    def is_there(self) -> bool:
        """Test whether there is a file; EnsioError: it or its journal is not regular or not readable."""
        for path in self._all:
            with Reading(path), suppress(FileNotFoundError):
                check_regular(path)
        return os.path.exists(self._path)

    @property
    def is_writable(self) -> bool:
        """Whether this user may write the file, and make the journal beside it."""
        places = self._path, os.path.dirname(self._path)
        may = all(os.access(place, os.W_OK, effective_ids=True) for place in places)
        return may and not any(map(made_by_another, self._all))

    def make(self, readers: Readership) -> None:
        """Make the file, empty, unless it exists. SQLite gives its journal the same permissions."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with suppress(FileExistsError), open(os.open(self._path, flags, 0o600), "rb") as file:
            descriptor = file.fileno()
            os.fchmod(descriptor, 0o600 | readers.mode(os.fstat(descriptor).st_gid) & ~umask())

    def connect_to_write(self) -> sqlite3.Connection:
        """Open the file; every addition is on disk when it is done."""
        is_new = not os.path.getsize(self._path)
        connection = self._connect("mode=rw")
        if is_new:
            connection.execute("PRAGMA journal_mode=WAL")  # the file keeps it
        for setting in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def connect_to_read(self) -> sqlite3.Connection:
        """Open the file. Where this user may not write, no other file is made."""
        if self.is_writable:
            connection = self._connect("mode=rw")
        elif self._has_journal:
            connection = self._connect("mode=ro&readonly_shm=1")
        else:
            connection = self._connect("immutable=1")
        connection.execute("PRAGMA query_only=ON")
        return connection

    def unlocked_state(self) -> tuple[int, ...] | None:
        """Return what a change of the file changes, for readers without locks; None: reading takes locks."""
        if self.is_writable or self._has_journal:
            return None
        status = os.stat(self._path)
        return status.st_ino, status.st_size, status.st_mtime_ns

    @property
    def needs_writer(self) -> bool:
        """Whether a failure to read may end with a user who may write: additions are in the journal only."""
        return self._has_journal and not self.is_writable

    @property
    def _has_journal(self) -> bool:
        """Whether additions may be in the journal only: of a running or killed program."""
        try:
            return os.path.getsize(f"{self._path}-wal") > 0
        except OSError:
            return False

    def _connect(self, how: str) -> sqlite3.Connection:
        address = f"file:{quote(os.fsencode(self._path))}?{how}"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = lambda text: text.decode(errors="surrogateescape")
        return connection
