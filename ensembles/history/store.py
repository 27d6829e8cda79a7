"""A history: experiments and their runs in SQLite or PostgreSQL."""

from __future__ import annotations

import logging
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    Select,
    and_,
    create_engine,
    delete,
    event,
    exists,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from ensembles.files.atomic_write import followed
from ensembles.files.readership import OWNER, Readership
from ensembles.files.untrusted import beginning_of
from ensembles.history.record import RunRecord
from ensembles.history.schema import (
    ACKNOWLEDGEMENTS,
    EXPERIMENTS,
    LABELS,
    MOST_CHARACTERS,
    RUNS,
    SCHEMA,
    SqliteFile,
    check_schema,
    make_schema,
    schema_of,
)
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text

Answer = TypeVar("Answer")

_LOG = logging.getLogger("ensembles")

_TRIES = 20
_PAUSE_S = 0.05
"""How often, and how long after another, a reader without locks reads what changed meanwhile."""

_AT_ONCE = 1000
"""Runs that one query names."""

_SQLITE = b"SQLite format 3\0"
"""Beginning of a file of SQLite."""

_LOCK = 0x656E73696F
"""Number of the lock under which PostgreSQL makes the tables."""


@dataclass(frozen=True)
class StoredRun:
    """A run of a history."""

    id: int  # Its number in this history
    experiment: str
    start: datetime  # Start of the run, UTC
    path: str  # Where the run was when it was added
    tasks: int
    span_s: float
    io_time_s: float
    labels: dict[str, str]


@dataclass(frozen=True)
class Experiment:
    """An experiment of a history: its name, the number of its runs, and the start of the latest (UTC)."""

    name: str
    runs: int
    latest: datetime


@dataclass(frozen=True)
class Acknowledgement:
    """A known change: the start of its first run (UTC), and why runs differ since then."""

    experiment: str
    since: datetime
    reason: str


def is_history(place: str) -> bool:
    """Check whether a place is a database: a URL, or a file of SQLite.

    Examples
    --------
    >>> from ensembles.history.store import is_history
    >>> is_history("postgresql+psycopg://user@host/name"), is_history("ensio-ior")
    (True, False)
    """
    if "://" in place:
        return True
    return beginning_of(place, len(_SQLITE)) == _SQLITE


class History:
    """The record of runs in a database.

    Parameters
    ----------
    place : str
        A file for SQLite, or a URL of SQLAlchemy such as ``postgresql+psycopg://user@host/name``.
    make : bool
        Make the database and its tables if they are missing.
    upgrade : bool
        Bring the tables of an earlier ensio up to date, in one transaction.
    keep_connection : bool
        Keep a connection to a server between transactions, and make another if it is lost. Default: none
        outlives its transaction, because many jobs share what a server can take.
    readers : Readership
        Who may read a file that is made, in addition to its owner.

    Attributes
    ----------
    name : str
        The place without a password.

    Raises
    ------
    EnsioError
        The database cannot be opened, holds no history, or one of another version of ensio.

    Examples
    --------
    >>> from ensembles.history.record import RunRecord
    >>> from ensembles.history.store import History
    >>> history = History("nightly.db", make=True)
    >>> history.add(RunRecord.of_run(en.open("ensio-ior")), "ior", {"commit": "abc"})
    True
    >>> [(run.experiment, run.tasks, run.labels) for run in history.runs("ior")]
    [('ior', 8, {'commit': 'abc'})]
    """

    def __init__(
        self,
        place: str,
        make: bool = False,
        upgrade: bool = False,
        keep_connection: bool = False,
        readers: Readership = OWNER,
    ) -> None:
        self._keep_connection = keep_connection
        self._reported: set[int] = set()
        try:
            self._url = make_url(place) if "://" in place else URL.create("sqlite", database=place)
        except ArgumentError:
            raise _no_place(place) from None
        is_sqlite = self._url.get_backend_name() == "sqlite"
        if is_sqlite and self._url.database:
            self._url = self._url.set(database=followed(self._url.database)[-1])
        self.name = self._url.render_as_string(hide_password=True) if "://" in place else place
        self._file = SqliteFile(self._url.database or "") if is_sqlite else None
        if make and self._file is not None:
            self._file.make(readers)
        if self._file is not None and not self._file.is_there():
            raise EnsioError(f"there is no history {self.name}: ensio history add makes one")
        found = self._read(schema_of) if make or upgrade else SCHEMA
        if (make and found is None) or (upgrade and found is not None and found < SCHEMA):
            with self._sentences(), self._writing() as connection:
                if self._file is None:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                make_schema(connection, self.name)
        self._read(lambda connection: check_schema(connection, self.name))

    @cached_property
    def _writer(self) -> Engine:
        return self._engine(None if self._file is None else self._file.connect_to_write)

    @cached_property
    def _reader(self) -> Engine:
        return self._writer if self._file is None else self._engine(self._file.connect_to_read)

    def _engine(self, connect: Callable[[], sqlite3.Connection] | None) -> Engine:
        if connect is not None:
            engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        kept = self._keep_connection
        pool = {"poolclass": QueuePool, "pool_size": 1} if kept else {"poolclass": NullPool}
        try:
            engine = create_engine(self._url, pool_pre_ping=kept, **pool)
        except (ArgumentError, NoSuchModuleError):
            raise _no_place(self.name) from None
        except ModuleNotFoundError as missing:
            raise EnsioError(f"{self.name} needs {missing.name}: pip install 'ensio[postgresql]'") from None
        if engine.dialect.name != "postgresql":
            raise EnsioError(f"{self.name}: a history is kept by SQLite or PostgreSQL")
        return engine

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        try:
            yield
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF
            if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                if self._file is not None and self._file.needs_writer:
                    raise EnsioError(
                        f"{self.name} was left by a program that ended while it wrote ({reason}), and opens "
                        "again once a user who may write it has read it: ask its owner for ensio history "
                        f"list --db {shlex.quote(self.name)}"
                    ) from None
                raise EnsioError(f"{self.name}: the database says: {reason}") from None
        except UnicodeDecodeError:  # of a message of SQLite about the damage
            reason = "its tables have damaged names"
        else:
            return
        raise EnsioError(
            f"{self.name} is damaged, or not a file of SQLite ({reason}): restore it from a copy"
        )

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self._file is not None and not self._file.is_writable:
            raise EnsioError(
                f"{self.name} cannot be changed by this user, who may not write file and folder, or did not "
                "make the file, in a folder that all users can write to: ask its owner, or name another file"
            )
        with self._writer.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    def _read(self, answer: Callable[[Connection], Answer]) -> Answer:
        """Answer a question in a transaction, again if it changed and was not locked."""
        with self._sentences():
            for left in reversed(range(_TRIES)):
                before = self._unlocked_state()
                try:
                    with self._reader.connect() as connection, connection.begin():
                        found = answer(connection)
                except SQLAlchemyError:
                    if not left or self._file is None or self._file.is_writable:
                        raise
                else:
                    if self._unlocked_state() == before:
                        return found
                time.sleep(_PAUSE_S)
        raise EnsioError(f"{self.name} changes all the time: read it again, or as a user who may write it")

    def _unlocked_state(self) -> tuple[int, ...] | None:
        return None if self._file is None else self._file.unlocked_state()

    def add(self, record: RunRecord, experiment: str, labels: Mapping[str, str] | None = None) -> bool:
        """Add a run to an experiment.

        Returns
        -------
        bool
            False: the experiment has this run already; nothing was changed.
        """
        return self.add_many([(record, experiment, labels or {})])[0]

    def add_many(self, rows: Sequence[tuple[RunRecord, str, Mapping[str, str]]]) -> list[bool]:
        """Add records to experiments, with labels, in one transaction; all or none."""
        with self._sentences(), self._writing() as connection:
            return [self._add(connection, *row) for row in rows]

    def paths(self) -> set[str]:
        """Return the paths of all runs."""
        return self._read(lambda connection: set(connection.execute(select(RUNS.c.path)).scalars()))

    def _add(
        self, connection: Connection, record: RunRecord, experiment: str, labels: Mapping[str, str]
    ) -> bool:
        number = self._experiment(connection, experiment)
        row = {
            "experiment_id": number,
            "identity": record.identity,
            "start_unix_ns": record.start_unix_ns,
            "added_unix_ns": time.time_ns(),
            "path": record.path,
            "tasks": record.tasks,
            "span_s": record.totals.get("span_s", 0.0),
            "io_time_s": record.totals.get("io_time_s", 0.0),
            "record": record.encode(),
        }
        try:
            with connection.begin_nested():
                key = connection.execute(insert(RUNS).values(row)).inserted_primary_key
        except IntegrityError:
            return False
        assert key is not None
        for name in labels:
            _check_name("a label", name)
        if labels:
            rows = [{"run_id": key[0], "name": name, "value": value} for name, value in labels.items()]
            connection.execute(insert(LABELS), rows)
        return True

    def _experiment(self, connection: Connection, name: str) -> int:
        """Return the number of an experiment; another process may make it at the same time."""
        _check_name("the experiment", name)
        found = select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.name == name)
        number = connection.execute(found).scalar()
        if number is None:
            try:
                with connection.begin_nested():
                    connection.execute(insert(EXPERIMENTS).values(name=name))
            except IntegrityError:
                pass  # made by another process meanwhile
            number = connection.execute(found).scalar_one()
        return int(number)

    def acknowledge(self, experiment: str, since: StoredRun, reason: str) -> None:
        """Take the runs from one on as the new baseline; the same run again replaces the reason."""
        since_ns = self._start_ns(since.id)
        with self._sentences(), self._writing() as connection:
            number = self._experiment(connection, experiment)
            row: dict[str, Any] = {"experiment_id": number, "since_unix_ns": since_ns}
            same = and_(*(ACKNOWLEDGEMENTS.c[name] == value for name, value in row.items()))
            connection.execute(delete(ACKNOWLEDGEMENTS).where(same))
            row |= {"made_unix_ns": time.time_ns(), "reason": reason}
            connection.execute(insert(ACKNOWLEDGEMENTS).values(row))

    def _start_ns(self, run: int) -> int:
        query = select(RUNS.c.start_unix_ns).where(RUNS.c.id == run)
        return int(self._read(lambda connection: connection.execute(query).scalar_one()))

    def acknowledgements(self, experiment: str) -> list[Acknowledgement]:
        """Return the known changes of an experiment in the order of time."""
        query = (
            select(ACKNOWLEDGEMENTS.c.since_unix_ns, ACKNOWLEDGEMENTS.c.reason)
            .join(EXPERIMENTS, ACKNOWLEDGEMENTS.c.experiment_id == EXPERIMENTS.c.id)
            .where(EXPERIMENTS.c.name == experiment)
            .order_by(ACKNOWLEDGEMENTS.c.since_unix_ns)
        )
        rows = self._read(lambda connection: connection.execute(query).all())
        return [Acknowledgement(experiment, _time(since), why) for since, why in rows]

    def acknowledged(self, experiment: str) -> Acknowledgement | None:
        """Return the latest known change of an experiment; None: there is none."""
        return next(reversed(self.acknowledgements(experiment)), None)

    def experiments(self, labels: Mapping[str, str] | None = None) -> list[Experiment]:
        """List the experiments by name."""
        columns = EXPERIMENTS.c.name, func.count(), func.max(RUNS.c.start_unix_ns)
        query = self._chosen(select(*columns).select_from(RUNS), None, labels or {})
        query = query.group_by(EXPERIMENTS.c.name).order_by(EXPERIMENTS.c.name)
        rows = self._read(lambda connection: connection.execute(query).all())
        return [Experiment(name, runs, _time(latest)) for name, runs, latest in rows]

    def runs(
        self,
        experiment: str | None = None,
        labels: Mapping[str, str] | None = None,
        last: int | None = None,
        until: StoredRun | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[StoredRun]:
        """List runs in the order of their starts."""
        names = "start_unix_ns", "path", "tasks", "span_s", "io_time_s"
        columns = select(RUNS.c.id, EXPERIMENTS.c.name, *(RUNS.c[name] for name in names))
        query = self._chosen(columns, experiment, labels or {})
        if numbers is not None:
            query = query.where(RUNS.c.id.in_(numbers))
        if until is not None:
            query = query.where(RUNS.c.start_unix_ns <= self._start_ns(until.id))
        query = query.order_by(RUNS.c.start_unix_ns.desc(), RUNS.c.id.desc()).limit(last)

        def answer(connection: Connection) -> tuple[Sequence[Any], dict[int, dict[str, str]]]:
            rows = connection.execute(query).all()
            return rows, self._labels(connection, [row.id for row in rows])

        rows, labels_of = self._read(answer)
        return [
            StoredRun(id, name, _time(start), path, tasks, span_s, io_time_s, labels_of.get(id, {}))
            for id, name, start, path, tasks, span_s, io_time_s in reversed(rows)
        ]

    def run(self, number: int) -> StoredRun:
        """Return the run with a number; EnsioError: there is none."""
        for found in self.runs(numbers=[number]):
            return found
        raise self._no_run(number)

    def state(self) -> tuple[int, ...]:
        """Return numbers that change when a run is added or removed, or a change is acknowledged."""
        queries = [
            select(func.count(table.c.experiment_id), func.coalesce(func.max(time), 0))
            for table, time in (
                (RUNS, RUNS.c.added_unix_ns),
                (ACKNOWLEDGEMENTS, ACKNOWLEDGEMENTS.c.made_unix_ns),
            )
        ]
        return self._read(
            lambda connection: tuple(
                number for query in queries for number in connection.execute(query).one()
            )
        )

    def labels(self, most: int = 1000) -> list[tuple[str, str]]:
        """List names and values of labels, at most so many."""
        query = select(LABELS.c.name, LABELS.c.value).distinct().order_by(LABELS.c.name, LABELS.c.value)
        rows = self._read(lambda connection: connection.execute(query.limit(most)).all())
        return [(row.name, row.value) for row in rows]

    def records(self, ids: Sequence[int]) -> list[RunRecord]:
        """Read the records of runs, in this order."""
        found = self._records(self.runs(numbers=ids))
        for number in ids:
            if not isinstance(record := found.get(number), RunRecord):
                raise record or self._no_run(number)
        return [found[number] for number in ids]  # type: ignore[misc]

    def readable(self, runs: Sequence[StoredRun]) -> dict[int, RunRecord]:
        """Read records by number; the logger ``ensembles`` reports once which cannot be read."""
        found = self._records(runs)
        for number, error in found.items():
            if isinstance(error, EnsioError) and number not in self._reported:
                self._reported.add(number)
                _LOG.warning("ensio: left out: %s", sanitize_text(str(error)))
        return {number: record for number, record in found.items() if isinstance(record, RunRecord)}

    def _no_run(self, number: int) -> EnsioError:
        return EnsioError(f"{self.name} has no run {number}: ensio history list shows its runs")

    def _records(self, runs: Sequence[StoredRun]) -> dict[int, RunRecord | EnsioError]:
        query = select(RUNS.c.id, RUNS.c.record).where(RUNS.c.id.in_([run.id for run in runs]))
        rows = self._read(lambda connection: connection.execute(query).all())
        encoded = {row.id: row.record for row in rows}
        found: dict[int, RunRecord | EnsioError] = {}
        for run in runs:
            try:
                known = run.id in encoded
                found[run.id] = RunRecord.decode(encoded[run.id]) if known else self._no_run(run.id)
            except EnsioError as error:
                found[run.id] = EnsioError(
                    f"run {run.id} of {run.experiment}, started {run.start:%Y-%m-%d %H:%M:%S} UTC: {error}: "
                    f"ensio history remove {run.id} --db {shlex.quote(self.name)} removes it"
                )
        return found

    def remove(self, ids: Iterable[int]) -> int:
        """Remove runs, and experiments that have none left. Returns how many runs there were."""
        with self._sentences(), self._writing() as connection:
            chosen = RUNS.c.id.in_(list(ids))
            removed = connection.execute(select(func.count()).where(chosen)).scalar_one()
            connection.execute(delete(RUNS).where(chosen))
            empty = ~exists().where(RUNS.c.experiment_id == EXPERIMENTS.c.id)
            connection.execute(delete(EXPERIMENTS).where(empty))
        return int(removed)

    def merge(self, other: History) -> tuple[int, int]:
        """Add all runs of another history, or none.

        Returns
        -------
        added, known : int
            Runs that were added, and runs that were there already.
        """
        runs = other.runs()
        added = 0
        with self._sentences(), self._writing() as connection:
            for first in range(0, len(runs), _AT_ONCE):
                some = runs[first : first + _AT_ONCE]
                for run, record in zip(some, other.records([run.id for run in some]), strict=True):
                    added += self._add(connection, record, run.experiment, run.labels)
            for known in {run.experiment for run in runs}:
                self._merge_acknowledgements(connection, other, known)
        return added, len(runs) - added

    def _merge_acknowledgements(self, connection: Connection, other: History, experiment: str) -> None:
        number = self._experiment(connection, experiment)
        for known in other.acknowledgements(experiment):
            since_ns = round(known.since.timestamp() * 1e6) * 1000
            facts = (number, since_ns, known.reason)
            row = dict(zip(("experiment_id", "since_unix_ns", "reason"), facts, strict=True))
            try:
                with connection.begin_nested():
                    connection.execute(
                        insert(ACKNOWLEDGEMENTS).values(row | {"made_unix_ns": time.time_ns()})
                    )
            except IntegrityError:
                pass  # it is known here

    def _chosen(self, query: Select[Any], experiment: str | None, labels: Mapping[str, str]) -> Select[Any]:
        query = query.join(EXPERIMENTS, RUNS.c.experiment_id == EXPERIMENTS.c.id)
        if experiment is not None:
            query = query.where(EXPERIMENTS.c.name == experiment)
        for name, value in labels.items():
            has = and_(LABELS.c.run_id == RUNS.c.id, LABELS.c.name == name, LABELS.c.value == value)
            query = query.where(exists().where(has))
        return query

    def _labels(self, connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, str]]:
        found: dict[int, dict[str, str]] = {}
        for first in range(0, len(ids), _AT_ONCE):
            query = select(LABELS).where(LABELS.c.run_id.in_(ids[first : first + _AT_ONCE]))
            for row in connection.execute(query.order_by(LABELS.c.name)):
                found.setdefault(row.run_id, {})[row.name] = row.value
        return found


def _no_place(name: str) -> EnsioError:
    """Make the error of a text that names no database."""
    return EnsioError(
        f"{name} is not a place for a history: name a file, or a URL such as "
        "postgresql+psycopg://user@host/name"
    )


def _check_name(what: str, name: str) -> None:
    """Refuse a name that is empty, or longer than the tables have room for."""
    if not 0 < len(name) <= MOST_CHARACTERS:
        raise EnsioError(
            f"{what} has {len(name):,} characters: give it a name of 1 to {MOST_CHARACTERS} characters"
        )


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction. A writer takes its lock at once: it could not get it after it has read."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _time(unix_ns: int) -> datetime:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC)
