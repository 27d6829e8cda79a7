"""Write samples of the kernel's counters as CSV and as Parquet, beside the file of a run's events."""

from __future__ import annotations

import csv
import json
import os
from typing import IO, Any, TextIO

import numpy as np

from ensembles.model.surroundings import COLUMN_MEANINGS, UNKNOWN, SurroundingsTable


def samples_path(path: str) -> str:
    """Return the path of the second file, for the samples: ``run.csv`` gives ``run.surroundings.csv``."""
    stem, suffix = os.path.splitext(path)
    return f"{stem}.surroundings{suffix}"


def write_samples_csv(stream: TextIO, table: SurroundingsTable) -> None:
    """Write a line of names, then a line for each sample; counters that a sample does not include are empty.

    Examples
    --------
    >>> import sys
    >>> from ensembles.model.surroundings import COLUMNS, SurroundingsTable
    >>> columns = {name: [-1, -1] for name in COLUMNS}
    >>> columns |= {"rank": [0, 0], "time": [5, 9], "cost": [1, 1], "dirty_bytes": [4096, -1]}
    >>> write_samples_csv(sys.stdout, SurroundingsTable(columns))
    rank,time,cost,dirty_bytes
    0,5,1,4096
    0,9,1,
    """
    columns = _known(table)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    cells = [
        ["" if number == UNKNOWN else number for number in column.tolist()] for column in columns.values()
    ]
    writer.writerows(zip(*cells, strict=True))


def write_samples_parquet(file: IO[bytes], table: SurroundingsTable, about: dict[str, Any]) -> None:
    """Write a row for each sample; counters that a sample does not include are null."""
    import pyarrow
    import pyarrow.parquet

    columns = _known(table)
    fields = [
        pyarrow.field(
            name,
            pyarrow.from_numpy_dtype(column.dtype),
            metadata=dict(zip(("unit", "meaning"), _meaning(name), strict=True)),
        )
        for name, column in columns.items()
    ]
    facts = {f"ensio.{name}": json.dumps(fact) for name, fact in about.items()}
    arrays = [pyarrow.array(column, mask=_is_missing(name, column)) for name, column in columns.items()]
    rows = pyarrow.table(arrays, schema=pyarrow.schema(fields, facts))
    pyarrow.parquet.write_table(rows, file, compression="zstd")


def _known(table: SurroundingsTable) -> dict[str, np.ndarray]:
    """Return the columns with at least one value."""
    return {
        name: column
        for name, column in table.columns.items()
        if name in ("rank", "time", "cost") or (column != UNKNOWN).any()
    }


def _is_missing(name: str, column: np.ndarray) -> np.ndarray:
    missing: np.ndarray = (column == UNKNOWN) & (name not in ("rank", "time"))
    return missing


def _meaning(name: str) -> tuple[str, str]:
    unit, meaning = COLUMN_MEANINGS[name]
    return unit, meaning.replace("-1: not", "null: not")
