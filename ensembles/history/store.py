"""A history: experiments and their runs in SQLite or PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

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
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from ensembles.history.record import RunRecord
from ensembles.history.schema import (
    ACKNOWLEDGEMENTS,
    EXPERIMENTS,
    LABELS,
    RUNS,
    SCHEMA,
    check_schema,
    make_schema,
    schema_of,
)
from ensembles.model.errors import EnsioError

BUSY_S = 120
"""How long a writer waits for others of the same database."""

_AT_ONCE = 1000
"""Runs that one query names."""

_SQLITE = b"SQLite format 3\0"
"""Beginning of a file of SQLite."""

_LOCK = 0x656E73696F
"""Number of the lock under which PostgreSQL makes the tables."""


@dataclass(frozen=True)
class StoredRun:
    """A run of a history.

    Attributes
    ----------
    id : int
        Its number in this history.
    experiment : str
    start : datetime.datetime
        Start of the run, UTC.
    path : str
        Where the run was when it was added.
    tasks : int
    span_s, io_time_s : float
    labels : dict of str to str
    """

    id: int
    experiment: str
    start: datetime
    path: str
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
    """Tell whether a place is a database: a URL, or a file of SQLite.

    Examples
    --------
    >>> from ensembles.history.store import is_history
    >>> is_history("postgresql+psycopg://user@host/name"), is_history("ensio-ior")
    (True, False)
    """
    if "://" in place:
        return True
    if not os.path.isfile(place):
        return False
    with open(place, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


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
        Keep a connection between transactions, and make another if it is lost. Default: none outlives its
        transaction, because many jobs share what a server can take.

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
        self, place: str, make: bool = False, upgrade: bool = False, keep_connection: bool = False
    ) -> None:
        self.place = place
        self._keep_connection = keep_connection
        self._url = place if "://" in place else f"sqlite:///{os.path.abspath(place)}"
        if not make and "://" not in place and not os.path.exists(place):
            raise EnsioError(f"there is no history {place}: ensio history add makes one")
        with self._sentences():
            if make or upgrade:
                with self._writing() as connection:
                    found = schema_of(connection)
                    if (make and found is None) or (upgrade and found is not None and found < SCHEMA):
                        if not self._is_sqlite:
                            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                        make_schema(connection)
            with self._reading() as connection:
                check_schema(connection, self.name)

    @cached_property
    def _engine(self) -> Engine:
        try:
            url = make_url(self._url)
            settings = {"timeout": BUSY_S} if url.get_backend_name() == "sqlite" else {}
            pool = (
                {"poolclass": QueuePool, "pool_size": 1} if self._keep_connection else {"poolclass": NullPool}
            )
            engine = create_engine(url, connect_args=settings, pool_pre_ping=self._keep_connection, **pool)
        except (ArgumentError, NoSuchModuleError):
            raise EnsioError(
                f"{self.place} is not a place for a history: name a file, or a URL such as "
                "postgresql+psycopg://user@host/name"
            ) from None
        except ModuleNotFoundError as missing:
            raise EnsioError(f"{self.name} needs {missing.name}: pip install 'ensio[postgresql]'") from None
        if engine.dialect.name not in ("sqlite", "postgresql"):
            raise EnsioError(f"{self.name}: a history is kept by SQLite or PostgreSQL")
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        return engine

    @property
    def _is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @property
    def name(self) -> str:
        """The place without a password."""
        return (
            make_url(self.place).render_as_string(hide_password=True) if "://" in self.place else self.place
        )

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        try:
            yield
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise EnsioError(f"{self.name}: the database says: {reason}") from None

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def add(self, record: RunRecord, experiment: str, labels: Mapping[str, str] | None = None) -> bool:
        """Add a run to an experiment.

        Parameters
        ----------
        record : RunRecord
        experiment : str
        labels : mapping of str to str, optional

        Returns
        -------
        bool
            False: the experiment has this run already; nothing was changed.

        Raises
        ------
        EnsioError
            The database cannot be written. It is as before.
        """
        with self._sentences(), self._writing() as connection:
            return self._add(connection, record, experiment, labels or {})

    def add_many(self, rows: Sequence[tuple[RunRecord, str, Mapping[str, str]]]) -> list[bool]:
        """Add records to experiments, with labels, in one transaction; all or none.

        Returns
        -------
        list of bool
            As for `add`.
        """
        with self._sentences(), self._writing() as connection:
            return [self._add(connection, *row) for row in rows]

    def paths(self) -> set[str]:
        """Return the paths of all runs."""
        with self._sentences(), self._reading() as connection:
            return set(connection.execute(select(RUNS.c.path)).scalars())

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
        if labels:
            rows = [{"run_id": key[0], "name": name, "value": value} for name, value in labels.items()]
            connection.execute(insert(LABELS), rows)
        return True

    def _experiment(self, connection: Connection, name: str) -> int:
        """Return the number of an experiment; another process may make it at the same time."""
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
        """Take the runs from one on as the new baseline; the same run again replaces the reason.

        Parameters
        ----------
        experiment : str
        since : StoredRun
            First run of the known change.
        reason : str

        Raises
        ------
        EnsioError
            The database cannot be written.
        """
        since_ns = self._start_ns(since.id)
        with self._sentences(), self._writing() as connection:
            number = self._experiment(connection, experiment)
            row: dict[str, Any] = {"experiment_id": number, "since_unix_ns": since_ns}
            same = and_(*(ACKNOWLEDGEMENTS.c[name] == value for name, value in row.items()))
            connection.execute(delete(ACKNOWLEDGEMENTS).where(same))
            row |= {"made_unix_ns": time.time_ns(), "reason": reason}
            connection.execute(insert(ACKNOWLEDGEMENTS).values(row))

    def _start_ns(self, run: int) -> int:
        with self._sentences(), self._reading() as connection:
            return int(connection.execute(select(RUNS.c.start_unix_ns).where(RUNS.c.id == run)).scalar_one())

    def acknowledgements(self, experiment: str) -> list[Acknowledgement]:
        """Return the known changes of an experiment in the order of time."""
        query = (
            select(ACKNOWLEDGEMENTS.c.since_unix_ns, ACKNOWLEDGEMENTS.c.reason)
            .join(EXPERIMENTS, ACKNOWLEDGEMENTS.c.experiment_id == EXPERIMENTS.c.id)
            .where(EXPERIMENTS.c.name == experiment)
            .order_by(ACKNOWLEDGEMENTS.c.since_unix_ns)
        )
        with self._sentences(), self._reading() as connection:
            return [
                Acknowledgement(experiment, _time(since), why) for since, why in connection.execute(query)
            ]

    def acknowledged(self, experiment: str) -> Acknowledgement | None:
        """Return the latest known change of an experiment; None: there is none."""
        return next(reversed(self.acknowledgements(experiment)), None)

    def experiments(self, labels: Mapping[str, str] | None = None) -> list[Experiment]:
        """List the experiments by name.

        Parameters
        ----------
        labels : mapping of str to str, optional
            Count only runs with all of these labels.
        """
        columns = EXPERIMENTS.c.name, func.count(), func.max(RUNS.c.start_unix_ns)
        query = self._chosen(select(*columns).select_from(RUNS), None, labels or {})
        query = query.group_by(EXPERIMENTS.c.name).order_by(EXPERIMENTS.c.name)
        with self._sentences(), self._reading() as connection:
            return [Experiment(name, runs, _time(latest)) for name, runs, latest in connection.execute(query)]

    def runs(
        self,
        experiment: str | None = None,
        labels: Mapping[str, str] | None = None,
        last: int | None = None,
        until: StoredRun | None = None,
    ) -> list[StoredRun]:
        """List runs in the order of their starts.

        Parameters
        ----------
        experiment : str, optional
            Only of this experiment.
        labels : mapping of str to str, optional
            Only with all of these labels.
        last : int, optional
            Only the latest ones, so many.
        until : StoredRun, optional
            Only this run and earlier ones.
        """
        until_ns = None if until is None else self._start_ns(until.id)
        return self._listed(experiment, labels or {}, last, until_ns=until_ns)

    def _listed(
        self,
        experiment: str | None = None,
        labels: Mapping[str, str] | None = None,
        last: int | None = None,
        number: int | None = None,
        until_ns: int | None = None,
    ) -> list[StoredRun]:
        query = self._chosen(
            select(
                RUNS.c.id,
                EXPERIMENTS.c.name,
                RUNS.c.start_unix_ns,
                RUNS.c.path,
                RUNS.c.tasks,
                RUNS.c.span_s,
                RUNS.c.io_time_s,
            ),
            experiment,
            labels or {},
        )
        if number is not None:
            query = query.where(RUNS.c.id == number)
        if until_ns is not None:
            query = query.where(RUNS.c.start_unix_ns <= until_ns)
        query = query.order_by(RUNS.c.start_unix_ns.desc(), RUNS.c.id.desc()).limit(last)
        with self._sentences(), self._reading() as connection:
            rows = connection.execute(query).all()
            labels_of = self._labels(connection, [row.id for row in rows])
        return [
            StoredRun(
                row.id,
                row.name,
                _time(row.start_unix_ns),
                row.path,
                row.tasks,
                row.span_s,
                row.io_time_s,
                labels_of.get(row.id, {}),
            )
            for row in reversed(rows)
        ]

    def run(self, number: int) -> StoredRun | None:
        """Return the run with a number; None: there is none."""
        return next(iter(self._listed(number=number)), None)

    def state(self) -> tuple[int, ...]:
        """Return numbers that change when a run is added or removed, or a change is acknowledged."""
        queries = [
            select(func.count(table.c.experiment_id), func.coalesce(func.max(time), 0))
            for table, time in (
                (RUNS, RUNS.c.added_unix_ns),
                (ACKNOWLEDGEMENTS, ACKNOWLEDGEMENTS.c.made_unix_ns),
            )
        ]
        with self._sentences(), self._reading() as connection:
            return tuple(number for query in queries for number in connection.execute(query).one())

    def labels(self, most: int = 1000) -> list[tuple[str, str]]:
        """List names and values of labels, at most so many."""
        query = select(LABELS.c.name, LABELS.c.value).distinct().order_by(LABELS.c.name, LABELS.c.value)
        with self._sentences(), self._reading() as connection:
            return [(row.name, row.value) for row in connection.execute(query.limit(most))]

    def records(self, ids: Sequence[int]) -> list[RunRecord]:
        """Read the records of runs, in this order.

        Raises
        ------
        EnsioError
            There is no such run, or its record is damaged.
        """
        query = select(RUNS.c.id, RUNS.c.record).where(RUNS.c.id.in_(ids))
        with self._sentences(), self._reading() as connection:
            found = {row.id: row.record for row in connection.execute(query)}
        missing = [number for number in ids if number not in found]
        if missing:
            raise EnsioError(f"{self.name} has no run {missing[0]}: ensio history list shows its runs")
        return [RunRecord.decode(found[number]) for number in ids]

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


def _prepare_sqlite(connection, _) -> None:  # type: ignore[no-untyped-def]
    """Prepare a connection: readers and one writer at once, and every addition is on disk when it is done."""
    connection.isolation_level = None  # SQLAlchemy begins transactions, by `_begin_sqlite`
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction. A writer takes its lock at once: it could not get it after it has read."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _time(unix_ns: int) -> datetime:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC)
