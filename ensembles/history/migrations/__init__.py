"""Schema of the record of runs, as steps of Alembic."""
