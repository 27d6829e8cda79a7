"""Write events as Parquet with pyarrow."""

from __future__ import annotations

import json
import os
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ensembles.model.error_names import error_name
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMN_MEANINGS, COLUMNS, Events

if TYPE_CHECKING:
    import pyarrow


_MEANINGS = {
    "op": ("", "kind of operation"),
    "layer": ("", "layer of the call"),
    "error_name": ("", "name of the error of a failed call"),
}


class ParquetWriter:
    """Writer of a Parquet file of events: times in ns, sizes in bytes, names as dictionaries.

    Units and meanings of the columns are stored as metadata of the columns.
    """

    def __init__(self, file: IO[bytes], about: dict[str, Any] | None = None) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise EnsioError(
                "Parquet needs pyarrow, which is not installed: pip install pyarrow, or choose csv"
            ) from error
        self._arrow = pyarrow
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {name: pyarrow.from_numpy_dtype(dtype) for name, dtype in COLUMNS.items()}
        types |= {"call": text, "file": text, "site": text, "op": text, "layer": text, "error_name": text}
        fields = [pyarrow.field(name, dtype, metadata=_meaning(name)) for name, dtype in types.items()]
        facts = {f"ensio.{name}": json.dumps(fact) for name, fact in (about or {}).items()}
        self._schema = pyarrow.schema(fields, facts)
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, events: Events) -> None:
        """Append events."""
        columns = {name: self._arrow.array(column) for name, column in events.columns.items()}
        for part, name in enumerate(("call", "layer", "op")):
            columns[name] = self._names(events.call, [call[part] for call in events.calls])
        # Arrow requires UTF-8; invalid bytes of a path become replacement characters.
        for name, texts in (("file", events.files), ("site", events.sites)):
            used, place = np.unique(getattr(events, name), return_inverse=True)
            known = [os.fsencode(texts[number]).decode("utf-8", "replace") for number in used]
            columns[name] = self._names(place, known)
        used, place = np.unique(events.error, return_inverse=True)
        errors = [error_name(number) if number else "" for number in used.tolist()]
        columns["error_name"] = self._names(place, errors)
        table = self._arrow.table([columns[name] for name in self._schema.names], schema=self._schema)
        self._writer.write_table(table)

    def _names(self, codes: np.ndarray, names: list[str]) -> pyarrow.DictionaryArray:
        unique = list(dict.fromkeys(names))
        number_of = {name: number for number, name in enumerate(unique)}
        numbers = np.array([number_of[name] for name in names], dtype="i4")
        texts = self._arrow.array(unique, self._arrow.string())
        return self._arrow.DictionaryArray.from_arrays(self._arrow.array(numbers[codes]), texts)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _meaning(name: str) -> dict[str, str]:
    unit, meaning = (COLUMN_MEANINGS | _MEANINGS)[name]
    return {"unit": unit, "meaning": meaning}
