"""Experiments, runs and labels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "experiment",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(256), nullable=False, unique=True),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "experiment_id", sa.Integer, sa.ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("identity", sa.String(32), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("added_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("tasks", sa.Integer, nullable=False),
        sa.Column("span_s", sa.Float, nullable=False),
        sa.Column("io_time_s", sa.Float, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("experiment_id", "identity"),
    )
    op.create_index("run_by_start", "run", ["experiment_id", "start_unix_ns"])
    op.create_table(
        "label",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.String(256), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_index("label_by_value", "label", ["name", "value"])
