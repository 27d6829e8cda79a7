"""Kept summaries: the results of passes as bytes, so that later commands need not make the pass again.

A summary class names the attributes that a pass fills (`Summary.results`). Their values are written as a tree
of plain values and arrays. To read them, an empty summary of the same request is filled. Nothing that is read
is executed, and no class is found by a name in the data.

A kept summary belongs to a run, by the run's *identity*, and to a request, by its *key*. Both are part of the
checksum, so that a result of another run, request or version is never taken.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ensembles.files.untrusted import MOST_PART_BYTES, inflate
from ensembles.model.events import Call, Events
from ensembles.passes.group import SummaryRequest

VERSION = 16
"""Version of the bytes and of what they mean. Raise it if a summary that is kept changes its results or its
attributes: results of other versions are computed again. If one kind of summary changes, a larger
`Summary.meaning` is enough."""

SAMPLE_BYTES = 1 << 12
"""Of the beginning and the end of a file, or a part of it, by which it is identified."""

MOST_BYTES = 10 << 20
"""Longer results are not kept, bytes."""

_MAGIC = b"ensio kept\n"
DIGEST_BYTES = 16
_HEAD = struct.Struct("<Q")


class NotKept(Exception):
    """A summary cannot be kept, or kept bytes are not those of the summary."""


class Dictionaries(Protocol):
    """The dictionaries of a run, to which the events in a summary refer."""

    @property
    def calls(self) -> tuple[Call, ...]: ...

    @property
    def files(self) -> Sequence[str]: ...


def key_of(request: SummaryRequest, selection: object = None) -> str | None:
    """Describe a request, equally in every process.

    `selection`: selection of the pass, a dataclass of plain values; None: all events.

    None: an argument of the request cannot be described, so that its result is not kept.
    """
    try:
        columns = None if request.columns is None else sorted(request.columns)
        return f"{VERSION} {_described(request.make)} {columns} {_described(selection)}"
    except NotKept:
        return None


def _described(thing: Any) -> str:
    if isinstance(thing, partial):
        arguments = [*map(_described, thing.args)]
        arguments += [f"{name}={_described(value)}" for name, value in sorted(thing.keywords.items())]
        return f"{_described(thing.func)}({', '.join(arguments)})"
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return repr(thing)
    if isinstance(thing, (list, tuple)):
        return f"({', '.join(map(_described, thing))})"
    if isinstance(thing, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_described, thing)))}}}"
    if isinstance(thing, np.ndarray):
        from hashlib import blake2b

        digest = blake2b(thing.tobytes(), digest_size=DIGEST_BYTES).hexdigest()
        return f"{thing.dtype.str}{thing.shape}{digest}"
    if is_dataclass(thing) and not isinstance(thing, type):
        values = [
            f"{each.name}={_described(getattr(thing, each.name))}" for each in fields(thing) if each.compare
        ]
        return f"{_name(type(thing))}({', '.join(values)})"
    if callable(thing) and hasattr(thing, "__qualname__"):
        owner = getattr(thing, "__self__", None)  # a bound method
        kind = thing if isinstance(thing, type) else owner
        if owner is not None and not isinstance(owner, type):
            return _bound(thing, owner)
        meaning = getattr(kind, "meaning", 0)
        return f"{_name(thing)}@{meaning}" if meaning else _name(thing)
    attributes = getattr(thing, "described", None)
    if attributes is None:
        raise NotKept(f"{type(thing).__name__} cannot be described")
    return f"{_name(type(thing))}{_described(attributes)}"


def _name(thing: Any) -> str:
    name = f"{thing.__module__}.{thing.__qualname__}"
    if "<" in name:  # a lambda, or a function in a function: another one may have this name
        raise NotKept(f"{name} has no name")
    return name


def _bound(method: Any, owner: Any) -> str:
    return f"{_described(owner)}.{method.__name__}"


def seal(identity: bytes, key: str, data: bytes) -> bytes:
    """Return data with a checksum that includes the run and the request."""
    return _MAGIC + _checksum(identity, key, data) + data


def unseal(identity: bytes, key: str, sealed: bytes) -> bytes:
    """Return the data of `seal`."""
    begin = len(_MAGIC) + DIGEST_BYTES
    data = sealed[begin:]
    if sealed[:begin] != _MAGIC + _checksum(identity, key, data):
        raise NotKept("the checksum is wrong")
    return data


def name_of(identity: bytes, key: str) -> str:
    """Return the name under which a result is stored."""
    return _checksum(identity, key, b"").hex()


def _checksum(identity: bytes, key: str, data: bytes) -> bytes:
    from hashlib import blake2b  # with OpenSSL

    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in (identity, key.encode("utf-8", "surrogatepass")):
        digest.update(_HEAD.pack(len(part)) + part)
    digest.update(data)
    return digest.digest()


def to_bytes(summary: Any, run: Dictionaries) -> bytes:
    """Write the results in a summary.

    `summary`: filled by a whole pass; or another object whose class has ``results`` and ``result_types``.
    """
    if not is_kept(summary):
        raise NotKept(f"{type(summary).__name__} is not kept")
    coder = _Coder(run)
    text = json.dumps(coder.code(summary), separators=(",", ":")).encode()
    data = b"".join([_HEAD.pack(len(text)), text, *coder.arrays])
    if len(data) > MOST_PART_BYTES:
        raise NotKept("it is too long")
    packed = zlib.compress(data, 1)
    if len(packed) > MOST_BYTES:
        raise NotKept("it is too long")
    return packed


def restore(summary: Any, packed: bytes, run: Dictionaries) -> None:
    """Fill an empty summary with the results of `to_bytes`.

    `summary`: empty, from the same request. If an exception is raised, it is not usable.
    """
    try:
        data = inflate(packed, MOST_PART_BYTES)
        (length,) = _HEAD.unpack_from(data)
        text = data[_HEAD.size : _HEAD.size + length]
        _Decoder(run, data[_HEAD.size + length :], summary).put(summary, json.loads(text))
    except (*_DAMAGE, struct.error) as error:
        raise NotKept("it is damaged") from error


def is_kept(thing: Any) -> bool:
    """Whether a summary, or a part of one, names the attributes that a pass fills.

    The class itself has to name them: a class derived from it may have others.
    """
    return bool(type(thing).__dict__.get("results"))


_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

_SEQUENCES: tuple[type, ...] = (list, tuple, set)


class _Coder:
    """Writes values as JSON, and arrays apart."""

    def __init__(self, run: Dictionaries) -> None:
        self._run = run
        self.arrays: list[bytes] = []

    def code(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Events):
            return self._events(value)
        if is_kept(value):
            condense = getattr(value, "condense", None)
            if condense is not None:
                condense()
            return ["parts", {name: self.code(getattr(value, name)) for name in type(value).results}]
        if isinstance(value, dict):
            kind = "counter" if isinstance(value, Counter) else "dict"
            return [kind, [[self.code(key), self.code(each)] for key, each in value.items()]]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["object", type(value).__name__, list(map(self.code, value))]
        if type(value) in _SEQUENCES:
            values = sorted(value) if isinstance(value, set) else value
            return [type(value).__name__, [self.code(each) for each in values]]
        if is_dataclass(value) and not isinstance(value, type):
            return [
                "object",
                type(value).__name__,
                [self.code(getattr(value, each.name)) for each in fields(value)],
            ]
        raise NotKept(f"{type(value).__name__} is not kept")

    def _array(self, array: np.ndarray) -> list[Any]:
        """Write an array: integers without zeros, as differences or in fewer bytes where that is shorter."""
        if array.dtype.kind not in "biuf":
            raise NotKept(f"arrays of {array.dtype} are not kept")
        flat = np.ascontiguousarray(array).reshape(-1)
        if flat.dtype.kind in "iu" and np.count_nonzero(flat) < len(flat) // 8:
            places = np.flatnonzero(flat)
            return ["sparse", array.dtype.str, list(array.shape), self.code(places), self.code(flat[places])]
        stored, differences = flat, False
        if flat.dtype.kind in "iu" and flat.dtype.itemsize > 1 and len(flat):
            stored = _narrowed(flat)
            if len(flat) > 1 and int(flat.max()) < 1 << 62 and int(flat.min()) > -(1 << 62):
                shorter = _narrowed(np.diff(flat.astype(np.int64), prepend=0))
                if shorter.dtype.itemsize < stored.dtype.itemsize:
                    stored, differences = shorter, True
        # Bytes of equal weight together compress better.
        octets = stored.view(np.uint8).reshape(-1, stored.dtype.itemsize).T
        self.arrays.append(octets.tobytes())
        return ["array", array.dtype.str, list(array.shape), stored.dtype.str, differences]

    def _events(self, events: Events) -> Any:
        if events.calls != self._run.calls or list(events.files) != list(self._run.files):
            raise NotKept("its events have other dictionaries than the run")
        return ["events", {name: self.code(column) for name, column in events.columns.items()}]


def _narrowed(values: np.ndarray) -> np.ndarray:
    """Return integers in the fewest bytes that hold all of them."""
    low, high = int(values.min()), int(values.max())
    for width in (1, 2, 4):
        for sign in "ui":
            limits = np.iinfo(f"{sign}{width}")
            if limits.min <= low and high <= limits.max:
                return values.astype(limits.dtype)
    return values


class _Decoder:
    """Reads what `_Coder` writes."""

    def __init__(self, run: Dictionaries, data: bytes, summary: Any) -> None:
        self._run, self._data, self._place = run, data, 0
        self._types: Mapping[str, Callable[..., Any]] = {kind.__name__: kind for kind in _types_of(summary)}

    def put(self, thing: Any, coded: Any) -> None:
        """Set the attributes that a pass fills."""
        kind, values = coded
        if kind != "parts" or tuple(values) != type(thing).results:
            raise NotKept("it has other attributes")
        for name, value in values.items():
            setattr(thing, name, self._read(value, getattr(thing, name, None)))

    def _read(self, coded: Any, empty: Any) -> Any:
        """Read a value; `empty` is that of the empty summary."""
        if not isinstance(coded, list):
            return coded
        kind, *rest = coded
        if kind == "parts":
            self.put(empty, coded)
            return empty
        if kind == "array":
            return self._array(*rest)
        if kind == "sparse":
            return self._sparse(*rest)
        if kind == "events":
            columns = {name: self._read(column, None) for name, column in rest[0].items()}
            return Events(columns, self._run.calls, self._run.files)
        if kind == "object":
            return self._types[rest[0]](*[self._read(each, None) for each in rest[1]])
        if kind in ("dict", "counter"):
            known = empty if isinstance(empty, dict) else {}
            pairs = [(self._read(key, None), value) for key, value in rest[0]]
            found = {key: self._read(value, known.get(key)) for key, value in pairs}
            return Counter(found) if kind == "counter" else found
        same = isinstance(empty, list) and len(empty) == len(rest[0])
        empties = empty if same else [None] * len(rest[0])
        values = [self._read(each, other) for each, other in zip(rest[0], empties, strict=True)]
        return {each.__name__: each for each in _SEQUENCES}[kind](values)

    def _array(self, dtype: str, shape: list[int], stored: str, differences: bool) -> np.ndarray:
        kind, target = np.dtype(stored), np.dtype(dtype)
        if kind.kind not in "biuf" or target.kind not in "biuf" or min(shape, default=0) < 0:
            raise NotKept("it is damaged")
        count = int(np.prod(shape, dtype=object))
        octets = np.frombuffer(self._data, np.uint8, count * kind.itemsize, self._place)
        self._place += len(octets)
        values = np.ascontiguousarray(octets.reshape(kind.itemsize, -1).T).view(kind).reshape(-1)
        if differences:
            values = np.cumsum(values, dtype=np.int64)
        return values.astype(target).reshape(shape)

    def _sparse(self, dtype: str, shape: list[int], places: Any, values: Any) -> np.ndarray:
        if min(shape, default=0) < 0 or 8 * math.prod(shape) > MOST_PART_BYTES:
            raise NotKept("it is damaged")
        found, where = np.zeros(math.prod(shape), np.dtype(dtype)), self._read(places, None)
        found[where] = self._read(values, None)
        return found.reshape(shape)


def _types_of(thing: Any) -> Iterator[type]:
    """Yield the classes of plain values in a summary and its parts."""
    yield Call
    yield from type(thing).__dict__.get("result_types", ())
    for name in type(thing).__dict__.get("results", ()):
        part = getattr(thing, name, None)
        for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else [part]:
            if is_kept(each):
                yield from _types_of(each)
