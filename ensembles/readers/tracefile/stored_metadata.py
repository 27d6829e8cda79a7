"""Read the metadata of a run from a ``trace.h5``."""

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
    has_part,
    open_group,
    read_attribute,
    read_numbers,
    read_rows,
    read_texts,
)

FORMAT = "ensio trace"
VERSION = 4
TEXT_ATTRIBUTES = ("mode", "job", "launcher", "recorder", "exclude", "user", "uid", "libc", "mpi")

_MOST_TASKS = 1 << 25
_MOST_CALLS = 1 << 62
_MOST_THREADS = 1 << 40


def read_number(file: h5py.File, name: str, most: int) -> int:
    """Read an attribute that is an integer from 0 to `most`; raise ValueError for another value."""
    number = operator.index(read_attribute(file, name))
    if not 0 <= number <= most:
        raise ValueError(f"its attribute {name} is {number}")
    return number


def read_metadata(file: h5py.File) -> RunMetadata:
    """Read the metadata that `ensembles.writers.tracefile.run_metadata` writes.

    Parameters
    ----------
    file : h5py.File

    Returns
    -------
    RunMetadata

    Raises
    ------
    KeyError, ValueError
        A part is missing or damaged.
    """
    calls = open_group(file, "calls")
    names, layers, ops = (read_texts(calls, part) for part in ("name", "layer", "op"))
    if not set(ops) <= set(OPS):
        raise ValueError("its calls have unknown kinds of operations")
    text = {name: os.fsdecode(read_attribute(file, name)) for name in TEXT_ATTRIBUTES}
    facts: dict[str, dict[str, str]] = {}
    for path, key, value in read_rows(open_group(file, "file_facts"), "path", "key", "value"):
        facts.setdefault(path, {})[key] = value
    mounts: dict[str, tuple[Mount, ...]] = {}
    group = open_group(file, "mounts")
    table = read_rows(group, "host", "point", "type", "source")
    for (host, point, kind, source), block in zip(
        table, read_numbers(group, "block_bytes").tolist(), strict=True
    ):
        mounts[host] = (*mounts.get(host, ()), Mount(point, kind, source, block))
    dropped, other = _read_losses(file)
    return RunMetadata(
        tasks=read_number(file, "tasks", _MOST_TASKS),
        threads=read_number(file, "threads", _MOST_THREADS),
        origin_unix_ns=read_number(file, "origin_unix_ns", LATEST_NS),
        calls=tuple(Call(*call) for call in zip(names, layers, ops, strict=True)),
        files=read_texts(file, "files"),
        processes=_read_processes(open_group(file, "processes")),
        notes=read_texts(file, "notes"),
        hosts=read_texts(file, "hosts"),
        clock_error_s=float(read_attribute(file, "clock_error_s")) if "clock_error_s" in file.attrs else None,
        environment={
            name: row[0] for name, *row in read_rows(open_group(file, "environment"), "name", "value")
        },
        mounts=mounts,
        file_facts=facts,
        dropped_by_reason=dropped,
        calls_on_other_paths=other,
        **text,
    )


def _read_losses(file: h5py.File) -> tuple[dict[str, int], int]:
    """Read dropped events by reason, and calls on other paths; older files have neither."""
    if not has_part(file, "losses"):
        return {}, 0
    group = open_group(file, "losses")
    counts = read_numbers(group, "events").tolist()
    if min(counts, default=0) < 0:
        raise ValueError("a number of lost calls is negative")
    found = dict(zip(read_texts(group, "reason"), counts, strict=True))
    return found, read_number(group, "calls_on_other_paths", _MOST_CALLS)


def _read_processes(group: h5py.Group) -> list[Process]:
    columns: list[Any] = []
    for field in fields(Process):
        if field.name == "command":
            columns.append(
                [tuple(text.split("\x1f")) if text else () for text in read_texts(group, "command")]
            )
        elif field.type == "str":
            columns.append(read_texts(group, field.name))
        elif field.type == "bool":
            columns.append([bool(value) for value in read_numbers(group, field.name).tolist()])
        else:
            columns.append(read_numbers(group, field.name).tolist())
    return [Process(*row) for row in zip(*columns, strict=True)]
