"""Patterns: what an application's I/O looks like, as data (format: testbed/patterns/README.md)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensembles.errors import EnsioError
from ensembles.patterns.expressions import Expression, parse
from ensembles.patterns.lines import Lines

REPETITION = "repetition"
PHASE = "phase"
RESERVED_NAMES = ("rank", "repetition", "call", "KiB", "MiB", "GiB")

_PHASE_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class CallKind:
    """What a call of a pattern needs, and does to the position in its file."""

    takes_offset: bool = False
    takes_size: bool = False
    writes: bool = False
    moves_position: bool = False


CALL_KINDS: Mapping[str, Mapping[str, CallKind]] = {
    "posix": {
        "open": CallKind(),
        "close": CallKind(),
        "lseek": CallKind(takes_offset=True),
        "fsync": CallKind(),
        "fdatasync": CallKind(),
        "read": CallKind(takes_size=True, moves_position=True),
        "write": CallKind(takes_size=True, moves_position=True, writes=True),
        "pread": CallKind(takes_offset=True, takes_size=True),
        "pwrite": CallKind(takes_offset=True, takes_size=True, writes=True),
    }
}


@dataclass(frozen=True)
class File:
    """A file of a pattern: shared by all tasks, or one a task if its name contains ``{rank}``."""

    name: str
    shared: bool


@dataclass(frozen=True)
class Operation:
    """A call, made `times` times in a row by the tasks for which `when` is not 0."""

    call: str
    kind: CallKind
    file: str
    times: Expression
    when: Expression
    offset: Expression | None
    size: Expression | None
    where: str


@dataclass(frozen=True)
class Phase:
    """Operations between barriers, one after each ``"repetition"`` or one at the end of the ``"phase"``."""

    name: str
    repetitions: Expression
    barrier: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Pattern:
    """A pattern as it was read; `expand` makes the calls of every task from it.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    path : Path
        Where it was read.
    parameters : dict of str to Expression
        In the order of the file: each may use those before it.
    """

    name: str
    path: Path
    title: str
    layer: str
    parameters: Mapping[str, Expression]
    files: Mapping[str, File]
    phases: tuple[Phase, ...]


def read_pattern(path: Path) -> Pattern:
    """Reads a pattern.

    Raises
    ------
    EnsioError
        If the file cannot be read or is no pattern, with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise EnsioError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EnsioError(f"{path}: is not a text file in UTF-8") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EnsioError(f"{path}: is not TOML: {error}") from None
    except RecursionError:
        raise EnsioError(
            f"{path}: is nested too deeply for a pattern: write it with fewer brackets"
        ) from None
    except ValueError:  # Python converts no number of thousands of digits
        raise EnsioError(f"{path}: holds a number with too many digits: write a smaller one") from None
    return _Reader(path, Lines(text)).pattern(content)


class _Reader:
    """Makes a `Pattern` from parsed TOML, and knows where each piece of it stands."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self.path = path
        self.lines = lines

    def where(self, *keys: str | int) -> str:
        line = self.lines.find(keys)
        return f"{self.path}:{line}" if line else str(self.path)

    def pattern(self, content: dict[str, Any]) -> Pattern:
        self._keys(content, (), required=("title", "layer", "parameters", "files", "phases"))
        layer = self._text(content, (), "layer")
        if layer not in CALL_KINDS:
            raise EnsioError(
                f'{self.where("layer")}: layer "{layer}" cannot be replayed: '
                f"it must be {' or '.join(CALL_KINDS)}"
            )
        files = {name: self._file(name, entry) for name, entry in self._table(content, "files").items()}
        phases = content["phases"]
        if not isinstance(phases, list) or not phases:
            raise EnsioError(f"{self.where('phases')}: phases must be [[phases]] tables, at least one")
        return Pattern(
            name=self.path.stem,
            path=self.path,
            title=self._text(content, (), "title"),
            layer=layer,
            parameters=self._parameters(self._table(content, "parameters")),
            files=files,
            phases=tuple(self._phase(number, entry, layer, files) for number, entry in enumerate(phases)),
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

    def _file(self, name: str, entry: Any) -> File:
        keys = ("files", name)
        if not isinstance(entry, dict):
            raise EnsioError(f"{self.where(*keys)}: a file is a table: [files.{name}]")
        self._keys(entry, keys, required=("path",))
        path = self._text(entry, keys, "path")
        shared = "{rank}" not in path
        plain = path.replace("{rank}", "0")
        if not plain.isprintable() or plain in ("", ".", "..") or set(plain) & set("/{}"):
            raise EnsioError(
                f'{self.where(*keys, "path")}: "{path}" must be a plain file name, '
                "with {rank} in it for a file a task"
            )
        return File(path, shared)

    def _phase(self, number: int, entry: Any, layer: str, files: Mapping[str, File]) -> Phase:
        keys = ("phases", number)
        if not isinstance(entry, dict):
            raise EnsioError(f"{self.where(*keys)}: a phase is a table: [[phases]]")
        self._keys(entry, keys, required=("name", "operations"), optional=("repetitions", "barrier"))
        name = self._text(entry, keys, "name")
        if not _PHASE_NAME.fullmatch(name):
            raise EnsioError(
                f'{self.where(*keys, "name")}: "{name}" must be letters, digits, - and _, at most 63 of them'
            )
        barrier = self._text(entry, keys, "barrier") if "barrier" in entry else REPETITION
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
            repetitions=self._expression(entry, keys, "repetitions", 1),
            barrier=barrier,
            operations=tuple(
                self._operation((*keys, "operations", i), operation, layer, files)
                for i, operation in enumerate(operations)
            ),
        )

    def _operation(
        self, keys: tuple[str | int, ...], entry: Any, layer: str, files: Mapping[str, File]
    ) -> Operation:
        if not isinstance(entry, dict):
            raise EnsioError(f"{self.where(*keys)}: an operation is a table: [[phases.operations]]")
        if "call" not in entry:
            raise EnsioError(f"{self.where(*keys)}: the key call is missing")
        call = self._text(entry, keys, "call")
        kinds = CALL_KINDS[layer]
        if call not in kinds:
            raise EnsioError(
                f'{self.where(*keys, "call")}: "{call}" is not a call of layer {layer}: '
                f"it must be one of {', '.join(kinds)}"
            )
        kind = kinds[call]
        required = ["call", "file"] + ["offset"] * kind.takes_offset + ["size"] * kind.takes_size
        self._keys(entry, keys, required=required, optional=("times", "when"), of=f" of {call}")
        file = self._text(entry, keys, "file")
        if file not in files:
            raise EnsioError(f"{self.where(*keys, 'file')}: there is no [files.{file}]")
        return Operation(
            call=call,
            kind=kind,
            file=file,
            times=self._expression(entry, keys, "times", 1),
            when=self._expression(entry, keys, "when", 1),
            offset=self._expression(entry, keys, "offset") if kind.takes_offset else None,
            size=self._expression(entry, keys, "size") if kind.takes_size else None,
            where=self.where(*keys),
        )

    def _keys(
        self,
        entry: Mapping[str, Any],
        keys: tuple[str | int, ...],
        required: list[str] | tuple[str, ...],
        optional: tuple[str, ...] = (),
        of: str = "",
    ) -> None:
        allowed = (*required, *optional)
        for key in entry:
            if key not in allowed:
                raise EnsioError(
                    f'{self.where(*keys, key)}: "{key}" is not a key{of}: it may be {", ".join(allowed)}'
                )
        for key in required:
            if key not in entry:
                raise EnsioError(f"{self.where(*keys)}: the key {key}{of} is missing")

    def _text(self, entry: Mapping[str, Any], keys: tuple[str | int, ...], key: str) -> str:
        if not isinstance(entry[key], str):
            raise EnsioError(f"{self.where(*keys, key)}: {key} must be text in quotes")
        return entry[key]

    def _table(self, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        if not isinstance(content[key], dict):
            raise EnsioError(f"{self.where(key)}: {key} must be a table")
        return content[key]

    def _expression(
        self, entry: Mapping[str, Any], keys: tuple[str | int, ...], key: str, default: int | None = None
    ) -> Expression:
        return parse(entry.get(key, default), self.where(*keys, key))
