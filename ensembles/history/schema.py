"""The tables of a history, the steps that make them (Alembic), and its file in SQLite.

The journal of the file is write-ahead: readers and one writer work at the same time. A reader takes its
locks in a second file, ``-shm``, which SQLite makes beside the first. A user who may not write makes none:
another user's file would keep the writers out.
"""

from __future__ import annotations

import math
import os
import sqlite3
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    inspect,
    text,
)
from sqlalchemy.types import TypeEngine

from ensembles.files.atomic_write import made_by_another
from ensembles.files.readership import Readership, umask
from ensembles.files.untrusted import Reading, check_regular
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import original_text, storable_text

SCHEMA = "0002"
"""Last of the steps in ``migrations/versions``."""

MOST_CHARACTERS = 256
"""Length of the names of experiments and labels."""

METADATA = MetaData()


class _Checked(TypeDecorator[Any]):
    """The type of a column of which no other value is read, and whose texts may hold any bytes."""

    impl = Text
    cache_ok = True

    def __init__(self, stored: TypeEngine[Any], type: type) -> None:
        super().__init__()
        self.impl, self.type = stored, type  # type: ignore[assignment] # as SQLAlchemy does with `impl`

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return storable_text(value) if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        if not isinstance(value, self.type) or (isinstance(value, float) and math.isnan(value)):
            raise EnsioError("a row of the history is damaged: restore the history from a copy")
        return original_text(value) if isinstance(value, str) else value


_NAME, _TEXT = _Checked(String(MOST_CHARACTERS), str), _Checked(Text(), str)
_NUMBER, _TIME, _SECONDS = (
    _Checked(Integer(), int),
    _Checked(BigInteger(), int),
    _Checked(Float(), float),
)

EXPERIMENTS = Table(
    "experiment",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", _NAME, nullable=False, unique=True),
)

RUNS = Table(
    "run",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("identity", String(32), nullable=False),
    Column("start_unix_ns", _TIME, nullable=False),
    Column("added_unix_ns", _TIME, nullable=False),
    Column("path", _TEXT, nullable=False),
    Column("tasks", _NUMBER, nullable=False),
    Column("span_s", _SECONDS, nullable=False),
    Column("io_time_s", _SECONDS, nullable=False),
    Column("record", LargeBinary, nullable=False),
    UniqueConstraint("experiment_id", "identity"),
    Index("run_by_start", "experiment_id", "start_unix_ns"),
)

LABELS = Table(
    "label",
    METADATA,
    Column("run_id", ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("name", _NAME, primary_key=True),
    Column("value", _TEXT, nullable=False),
    Index("label_by_value", "name", "value"),
)

ACKNOWLEDGEMENTS = Table(
    "acknowledgement",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("since_unix_ns", _TIME, nullable=False),
    Column("made_unix_ns", _TIME, nullable=False),
    Column("reason", _TEXT, nullable=False),
    UniqueConstraint("experiment_id", "since_unix_ns"),
)

_TABLES = {"": set(), SCHEMA: set(METADATA.tables), "0001": set(METADATA.tables) - {ACKNOWLEDGEMENTS.name}}
"""Tables at each step."""


def schema_of(connection: Connection) -> str | None:
    """Return the step that the tables of a database are at; None: it has no tables of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def check_schema(connection: Connection, name: str) -> None:
    """Refuse a database without our tables, or with those of another version."""
    found = _consistent_schema(connection, name)
    if found is None:
        raise EnsioError(f"{name} holds no history: ensio history add makes one")
    if found < SCHEMA:
        raise EnsioError(
            f"{name} has the schema {found} of an earlier ensio: ensio history upgrade brings it to {SCHEMA}"
        )
    if found != SCHEMA:
        raise EnsioError(
            f"{name} has the schema {found} of a later ensio, and this one reads {SCHEMA}: use that"
        )


def _consistent_schema(connection: Connection, name: str) -> str | None:
    """Return the step that the tables are at, which has to be the one that the database names."""
    found = schema_of(connection)
    tables = set(inspect(connection).get_table_names())
    ours = tables & set(METADATA.tables)
    is_shared = found is None and connection.dialect.name != "sqlite"  # other programs may use the server
    if tables and not ours and not is_shared and found not in _TABLES:
        raise EnsioError(f"{name} is the database of another program: name another file")
    if (found or "") <= SCHEMA and ours != _TABLES.get(found or ""):
        raise EnsioError(
            f"{name} names {f'the schema {found}' if found else 'no schema'}, and its tables differ: "
            "restore it from a copy, or make another history"
        )
    return found


def make_schema(connection: Connection, name: str) -> None:
    """Bring the tables of a database up to date, in the transaction of this connection."""
    from alembic import command
    from alembic.config import Config

    _consistent_schema(connection, name)
    config = Config()
    config.set_main_option("script_location", "ensembles.history:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


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
        """Return whether this user may write the file and create its journal beside it."""
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
