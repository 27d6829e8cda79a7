"""What Alembic runs: the steps, in the transaction of the connection that it is given."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
