"""Known changes, with which a new baseline begins."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "acknowledgement",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "experiment_id", sa.Integer, sa.ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("since_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("made_unix_ns", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.UniqueConstraint("experiment_id", "since_unix_ns"),
    )
