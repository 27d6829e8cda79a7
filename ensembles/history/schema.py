"""The tables of a history, and the steps that make them (Alembic)."""

from __future__ import annotations

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
    UniqueConstraint,
    inspect,
    text,
)

from ensembles.model.errors import EnsioError

SCHEMA = "0002"
"""Last of the steps in ``migrations/versions``."""

METADATA = MetaData()

EXPERIMENTS = Table(
    "experiment",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(256), nullable=False, unique=True),
)

RUNS = Table(
    "run",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("identity", String(32), nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("added_unix_ns", BigInteger, nullable=False),
    Column("path", Text, nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("span_s", Float, nullable=False),
    Column("io_time_s", Float, nullable=False),
    Column("record", LargeBinary, nullable=False),
    UniqueConstraint("experiment_id", "identity"),
    Index("run_by_start", "experiment_id", "start_unix_ns"),
)

LABELS = Table(
    "label",
    METADATA,
    Column("run_id", ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("name", String(256), primary_key=True),
    Column("value", Text, nullable=False),
    Index("label_by_value", "name", "value"),
)

ACKNOWLEDGEMENTS = Table(
    "acknowledgement",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("since_unix_ns", BigInteger, nullable=False),
    Column("made_unix_ns", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    UniqueConstraint("experiment_id", "since_unix_ns"),
)


def schema_of(connection: Connection) -> str | None:
    """Return the step that the tables of a database are at; None: it has no tables of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def check_schema(connection: Connection, url: str) -> None:
    """Refuse a database without our tables, or with those of another version.

    Raises
    ------
    EnsioError
    """
    found = schema_of(connection)
    if found is None:
        raise EnsioError(f"{url} holds no history: ensio history add makes one")
    if found < SCHEMA:
        raise EnsioError(
            f"{url} has the schema {found} of an earlier ensio: ensio history upgrade brings it to {SCHEMA}"
        )
    if found != SCHEMA:
        raise EnsioError(
            f"{url} has the schema {found} of a later ensio, and this one reads {SCHEMA}: use that"
        )


def make_schema(connection: Connection) -> None:
    """Bring the tables of a database up to date, in the transaction of this connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "ensembles.history:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
