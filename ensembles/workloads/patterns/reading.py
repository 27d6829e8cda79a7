"""Reader of patterns in TOML, which checks every key and names its line in messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ensembles.files.toml_files import read_toml
from ensembles.model.errors import EnsioError
from ensembles.workloads.patterns.calls import (
    COLLECTIVELY_OPENED,
    COMMON_NAMES,
    EXCHANGE,
    FILE_CALLS,
    OTHER_CALLS,
    CallKind,
)
from ensembles.workloads.patterns.expressions import CONSTANTS, Expression, parse
from ensembles.workloads.patterns.pattern import PHASE, REPETITION, File, Operation, Pattern, Phase
from ensembles.workloads.patterns.toml_tables import Lines, Place, Tables

RESERVED_NAMES = ("rank", "repetition", "call", "box", *CONSTANTS)

HDF5_HINTS = (
    "hdf5.alignment",
    "hdf5.alignment_threshold",
    "hdf5.metadata_block_size",
    "hdf5.sieve_buffer_size",
    "hdf5.collective_metadata",
    "hdf5.defer_metadata",
    "hdf5.libver",
    "hdf5.chunk_bytes",
)

_PHASE_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HINT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_PLACE = re.compile(r"\{([^{}]*)\}")
_PIECES = ("pieces", "stride", "planes", "plane_stride")


def read_pattern(path: Path, layer: str | None = None) -> Pattern:
    """Read a pattern, perhaps with another layer."""
    reader, content = _read(path)
    if "based_on" in content:
        return reader.variant(content, layer)
    return reader.pattern(content, layer)


def _read(path: Path) -> tuple[_Reader, dict[str, Any]]:
    text, content = read_toml(path)
    return _Reader(path, Lines(text)), content


class _Reader(Tables):
    """Parser of a `Pattern`, with the line of each key."""

    def variant(self, content: dict[str, Any], layer: str | None) -> Pattern:
        """Parse a pattern that is based on another one and replaces parts of it."""
        self.keys(content, (), ("title", "based_on"), ("layer", "parameters", "paper", "hints"))
        name = self.text(content, (), "based_on")
        if not _PHASE_NAME.fullmatch(name):
            raise EnsioError(
                f'{self.where("based_on")}: "{name}" is not the name of a pattern in the same folder'
            )
        if layer is None and "layer" in content:
            layer = self.text(content, (), "layer")
        reader, base = _read(self.path.with_name(f"{name}.toml"))
        if "based_on" in base:
            raise EnsioError(f"{self.where('based_on')}: {name} is based on another pattern itself")
        pattern = reader.pattern(base, layer)
        parameters = self._values(content, "parameters", pattern.parameters)
        return replace(
            pattern,
            name=self.path.stem,
            path=self.path,
            title=self.text(content, (), "title"),
            parameters={**pattern.parameters, **parameters},
            paper={**pattern.paper, **self._values(content, "paper", pattern.parameters)},
            hints={**pattern.hints, **self._hints(content, pattern.parameters)},
        )

    def pattern(self, content: dict[str, Any], layer: str | None) -> Pattern:
        """Parse a complete pattern."""
        self.keys(content, (), ("title", "layer", "parameters", "files", "phases"), ("paper", "hints"))
        own = self.text(content, (), "layer")
        layer = own if layer is None else layer
        files = {name: self._file(name, entry, layer) for name, entry in self.table(content, "files").items()}
        phases = content["phases"]
        if not isinstance(phases, list) or not phases:
            raise EnsioError(f"{self.where('phases')}: phases must be [[phases]] tables, at least one")
        parameters = self._parameters(self.table(content, "parameters"))
        return Pattern(
            name=self.path.stem,
            path=self.path,
            title=self.text(content, (), "title"),
            parameters=parameters,
            paper=self._values(content, "paper", parameters),
            hints=self._hints(content, parameters),
            files=files,
            phases=tuple(self._phase(number, entry, files) for number, entry in enumerate(phases)),
        )

    def _parameters(self, entries: dict[str, Any]) -> dict[str, Expression]:
        for name in entries:
            if not _IDENTIFIER.fullmatch(name) or name in RESERVED_NAMES:
                raise EnsioError(
                    f'{self.where("parameters", name)}: "{name}" cannot be the name of a parameter'
                )
        if "tasks" not in entries:
            raise EnsioError(f"{self.where('parameters')}: the parameter tasks is missing")
        return {name: parse(source, self.where("parameters", name)) for name, source in entries.items()}

    def _values(
        self, content: dict[str, Any], table: str, parameters: Mapping[str, Expression]
    ) -> dict[str, Expression]:
        """Parse a table with other values of existing parameters."""
        entries = self.table(content, table) if table in content else {}
        for name in entries:
            if name not in parameters:
                raise EnsioError(
                    f"{self.where(table, name)}: there is no parameter {name}: "
                    f"choose from {', '.join(parameters)}"
                )
        return {name: parse(source, self.where(table, name)) for name, source in entries.items()}

    def _hints(self, content: dict[str, Any], parameters: Iterable[str]) -> dict[str, str]:
        hints = {}
        for name, value in self.table(content, "hints").items() if "hints" in content else ():
            where = self.where("hints", name)
            if not _HINT_NAME.fullmatch(name):
                raise EnsioError(f'{where}: "{name}" cannot be the name of a hint')
            if name.startswith("hdf5.") and name not in HDF5_HINTS:
                raise EnsioError(f'{where}: "{name}" is not a hint: choose from {", ".join(HDF5_HINTS)}')
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise EnsioError(f"{where}: a hint is text in quotes or a whole number")
            text = str(value)
            if not text.isprintable() or not text.strip() or len(text) > 255:
                raise EnsioError(f"{where}: a hint is one line of text, not empty")
            for used in _PLACE.findall(text):
                if used not in parameters:
                    raise EnsioError(f"{where}: there is no parameter {used}")
            hints[name] = text
        return hints

    def _file(self, name: str, entry: Any, layer: str) -> File:
        keys = ("files", name)
        if not isinstance(entry, dict):
            raise EnsioError(f"{self.where(*keys)}: a file is a table: [files.{name}]")
        self.keys(entry, keys, ("path",), ("layer", "count"))
        path = self.text(entry, keys, "path")
        at = self.where(*keys, "layer") if "layer" in entry else self.where("layer")
        layer = self.text(entry, keys, "layer") if "layer" in entry else layer
        if layer not in FILE_CALLS:
            raise EnsioError(
                f'{at}: layer "{layer}" has no calls on files: choose from {", ".join(FILE_CALLS)}'
            )
        places = _PLACE.findall(path)
        plain = path.replace("{rank}", "0").replace("{index}", "0")
        if not plain.isprintable() or plain in ("", ".", "..") or set(plain) & set("/{}") or len(places) > 1:
            raise EnsioError(
                f'{self.where(*keys, "path")}: "{path}" must be a plain file name, '
                "with {rank} for one file per task, or {index} for numbered files"
            )
        if ("index" in places) != ("count" in entry):
            raise EnsioError(
                f"{self.where(*keys)}: a path with {{index}} and the key count need each other: "
                "add the missing one"
            )
        if "rank" in places and layer in COLLECTIVELY_OPENED:
            raise EnsioError(
                f'{self.where(*keys, "path")}: "{path}" is one file per task, but all tasks open a file of '
                f"layer {layer} together"
            )
        return File(path, layer, self.expression(entry, keys, "count") if "count" in entry else None)

    def _phase(self, number: int, entry: Any, files: Mapping[str, File]) -> Phase:
        keys = ("phases", number)
        if not isinstance(entry, dict):
            raise EnsioError(f"{self.where(*keys)}: a phase is a table: [[phases]]")
        self.keys(entry, keys, ("name", "operations"), ("when", "repetitions", "barrier"))
        name = self.text(entry, keys, "name")
        if not _PHASE_NAME.fullmatch(name):
            raise EnsioError(f'{self.where(*keys, "name")}: "{name}" must be 1 to 63 letters, digits, - or _')
        barrier = self.text(entry, keys, "barrier") if "barrier" in entry else REPETITION
        if barrier not in (REPETITION, PHASE):
            raise EnsioError(
                f'{self.where(*keys, "barrier")}: barrier is "{barrier}", not "{REPETITION}" or "{PHASE}"'
            )
        operations = entry["operations"]
        if not isinstance(operations, list) or not operations:
            raise EnsioError(
                f"{self.where(*keys)}: operations must be [[phases.operations]] tables, at least one"
            )
        return Phase(
            name=name,
            when=self.expression(entry, keys, "when", 1),
            repetitions=self.expression(entry, keys, "repetitions", 1),
            barrier=barrier,
            operations=tuple(
                self._operation((*keys, "operations", i), operation, files)
                for i, operation in enumerate(operations)
            ),
        )

    def _operation(self, keys: Place, entry: Any, files: Mapping[str, File]) -> Operation:
        if not isinstance(entry, dict):
            raise EnsioError(f"{self.where(*keys)}: an operation is a table: [[phases.operations]]")
        if "call" not in entry:
            raise EnsioError(f"{self.where(*keys)}: the key call is missing")
        call = self.text(entry, keys, "call")
        if call in OTHER_CALLS:
            kind, file, required = OTHER_CALLS[call], None, ["call", *OTHER_CALLS[call].needs]
        else:
            call, kind, file = self._call_on_file(keys, entry, call, files)
            required = ["call", "file", *kind.needs]
            if kind.names_file and files[file].count:
                required.append("index")
        pieces = (*_PIECES, *(("boxes",) if kind.in_boxes else ())) if kind.in_pieces else ()
        self.keys(
            entry,
            keys,
            required,
            (*pieces, "times", "when", "alternates"),
            of=f" of {call.partition('.')[2]}",
        )
        for stride, number in (("stride", "pieces"), ("plane_stride", "planes")):
            if (stride in entry) != (number in entry):
                raise EnsioError(
                    f"{self.where(*keys)}: {number} and {stride} need each other: add the missing one"
                )
        return Operation(
            call=call,
            kind=kind,
            file=file,
            times=self.expression(entry, keys, "times", 1),
            when=self.expression(entry, keys, "when", 1),
            values={
                key: self.expression(entry, keys, key)
                for key in (*required, *pieces)
                if key in entry and key not in ("call", "file")
            },
            where=self.where(*keys),
            alternates=self._alternates(keys, entry),
        )

    def _alternates(self, keys: Place, entry: Mapping[str, Any]) -> bool:
        """Return whether the calls take turns with those of the operation before."""
        given = entry.get("alternates", False)
        at = self.where(*keys, "alternates") if "alternates" in entry else ""
        if not isinstance(given, bool):
            raise EnsioError(f"{at}: alternates is true or false")
        if given and keys[-1] == 0:
            raise EnsioError(f"{at}: there is no operation before the first of a phase")
        if given and entry["call"] == EXCHANGE:
            raise EnsioError(f"{at}: consecutive exchanges complete together and cannot take turns")
        return given

    def _call_on_file(
        self, keys: Place, entry: Mapping[str, Any], call: str, files: Mapping[str, File]
    ) -> tuple[str, CallKind, str]:
        if "file" not in entry:
            every = {name for calls in FILE_CALLS.values() for name in calls}
            every.update(name for names in COMMON_NAMES.values() for name in names)
            if call in every:
                raise EnsioError(f"{self.where(*keys)}: the key file of {call} is missing")
            raise EnsioError(
                f'{self.where(*keys, "call")}: "{call}" is not a call without a file: '
                f"choose from {', '.join(OTHER_CALLS)}"
            )
        file = self.text(entry, keys, "file")
        if file not in files:
            raise EnsioError(f"{self.where(*keys, 'file')}: there is no [files.{file}]")
        layer = files[file].layer
        kinds = FILE_CALLS[layer]
        name = COMMON_NAMES[layer].get(call, call)
        if name not in kinds:
            raise EnsioError(
                f'{self.where(*keys, "call")}: "{call}" is not a call of layer {layer}: '
                f"choose from {', '.join(kinds)}"
            )
        return f"{layer}.{name}", kinds[name], file
