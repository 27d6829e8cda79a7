"""What a ``trace.h5`` tells about its run beside the events."""

from __future__ import annotations

import operator
import os
from dataclasses import fields
from typing import Any

import h5py

from ensembles.model.events import OPS, Call
from ensembles.model.metadata import Mount, Process, RunMetadata
from ensembles.readers.common.value_ranges import LATEST_NS
from ensembles.readers.tracefile.checked_parts import (
    attribute_of,
    group_of,
    has_part,
    numbers_of,
    rows_of,
    texts_of,
)

FORMAT = "ensio trace"
VERSION = 4
TEXT_ATTRIBUTES = ("mode", "job", "launcher", "recorder", "exclude", "user", "uid", "libc", "mpi")

_MOST_TASKS = 1 << 25
_MOST_CALLS = 1 << 62
_MOST_THREADS = 1 << 40


def number_of(file: h5py.File, name: str, most: int) -> int:
    """An attribute that is a whole number from 0 to `most`."""
    number = operator.index(attribute_of(file, name))
    if not 0 <= number <= most:
        raise ValueError(f"its attribute {name} is {number}")
    return number


def read_metadata(file: h5py.File) -> RunMetadata:
    """The metadata of a run, as `ensembles.writers.tracefile.run_metadata` writes them."""
    calls = group_of(file, "calls")
    names, layers, ops = (texts_of(calls, part) for part in ("name", "layer", "op"))
    if not set(ops) <= set(OPS):
        raise ValueError("its calls have unknown kinds of operations")
    text = {name: os.fsdecode(attribute_of(file, name)) for name in TEXT_ATTRIBUTES}
    facts: dict[str, dict[str, str]] = {}
    for path, key, value in rows_of(group_of(file, "file_facts"), "path", "key", "value"):
        facts.setdefault(path, {})[key] = value
    mounts: dict[str, tuple[Mount, ...]] = {}
    group = group_of(file, "mounts")
    table = rows_of(group, "host", "point", "type", "source")
    for (host, point, kind, source), block in zip(
        table, numbers_of(group, "block_bytes").tolist(), strict=True
    ):
        mounts[host] = (*mounts.get(host, ()), Mount(point, kind, source, block))
    dropped, other = _read_losses(file)
    return RunMetadata(
        tasks=number_of(file, "tasks", _MOST_TASKS),
        threads=number_of(file, "threads", _MOST_THREADS),
        origin_unix_ns=number_of(file, "origin_unix_ns", LATEST_NS),
        calls=tuple(Call(*call) for call in zip(names, layers, ops, strict=True)),
        files=texts_of(file, "files"),
        processes=_read_processes(group_of(file, "processes")),
        notes=texts_of(file, "notes"),
        hosts=texts_of(file, "hosts"),
        clock_error_s=float(attribute_of(file, "clock_error_s")) if "clock_error_s" in file.attrs else None,
        environment={name: row[0] for name, *row in rows_of(group_of(file, "environment"), "name", "value")},
        mounts=mounts,
        file_facts=facts,
        dropped_by_reason=dropped,
        calls_on_other_paths=other,
        **text,
    )


def _read_losses(file: h5py.File) -> tuple[dict[str, int], int]:
    """Dropped events by reason, and calls on other paths; files that were written before have neither."""
    if not has_part(file, "losses"):
        return {}, 0
    group = group_of(file, "losses")
    counts = numbers_of(group, "events").tolist()
    if min(counts, default=0) < 0:
        raise ValueError("it lost less than nothing")
    found = dict(zip(texts_of(group, "reason"), counts, strict=True))
    return found, number_of(group, "calls_on_other_paths", _MOST_CALLS)


def _read_processes(group: h5py.Group) -> list[Process]:
    columns: list[Any] = []
    for field in fields(Process):
        if field.name == "command":
            columns.append([tuple(text.split("\x1f")) if text else () for text in texts_of(group, "command")])
        elif field.type == "str":
            columns.append(texts_of(group, field.name))
        elif field.type == "bool":
            columns.append([bool(value) for value in numbers_of(group, field.name).tolist()])
        else:
            columns.append(numbers_of(group, field.name).tolist())
    return [Process(*row) for row in zip(*columns, strict=True)]
