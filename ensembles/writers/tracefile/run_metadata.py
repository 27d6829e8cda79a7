"""Write the metadata of a run into a ``trace.h5``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import h5py
import numpy as np

from ensembles.model.flights import Flights
from ensembles.model.metadata import KERNEL_BYTES, Process, RunMetadata
from ensembles.readers.tracefile.tracefile import FORMAT, TEXT_ATTRIBUTES, VERSION
from ensembles.writers.tracefile.events import put_column, put_text, put_texts

_PROCESS_UNITS = {"start_unix_ns": "ns since 1970-01-01 UTC", "end_unix_ns": "ns since 1970-01-01 UTC"}


def write_metadata(
    file: h5py.File, metadata: RunMetadata, complete: bool, made_from: Mapping[str, tuple[int, int]]
) -> None:
    """Write the metadata of a run."""
    put_text(file, "format", FORMAT)
    file.attrs["version"] = VERSION
    file.attrs["complete"] = np.uint8(complete)
    file.attrs["tasks"] = metadata.tasks
    file.attrs["threads"] = metadata.threads
    file.attrs["left_out"] = metadata.left_out
    file.attrs["origin_unix_ns"] = metadata.origin_unix_ns
    if metadata.clock_error_s is not None:
        file.attrs["clock_error_s"] = metadata.clock_error_s
    put_text(file, "summed", metadata.summed)
    if metadata.clock_step_s is not None:
        file.attrs["clock_step_s"] = metadata.clock_step_s
    for name in TEXT_ATTRIBUTES:
        put_text(file, name, getattr(metadata, name))
    calls = file.create_group("calls")
    for part in ("name", "layer", "op"):
        put_texts(calls, part, [getattr(call, part) for call in metadata.calls], f"{part} of each call")
    put_texts(file, "files", metadata.files, "absolute paths; the first: none or unknown")
    put_texts(file, "sites", metadata.sites.texts, "call sites; the first: unknown")
    put_texts(file, "hosts", metadata.hosts, "nodes")
    put_texts(file, "notes", metadata.notes, "data-quality warnings")
    _write_processes(file.create_group("processes"), metadata.processes)
    _write_facts(file, metadata)
    _write_losses(file.create_group("losses"), metadata)
    _write_flights(file.create_group("flights"), metadata)
    spools = file.create_group("spools")
    identities = list(made_from.values())
    put_texts(spools, "name", list(made_from), "files that this one was made from")
    _put_numbers(spools, "bytes", [size for size, _ in identities], "bytes")
    _put_numbers(spools, "mtime_ns", [changed for _, changed in identities], "ns since 1970-01-01 UTC")


def _write_facts(file: h5py.File, metadata: RunMetadata) -> None:
    facts = [(path, *fact) for path, known in metadata.file_facts.items() for fact in known.items()]
    mounts = [(host, mount) for host, table in metadata.mounts.items() for mount in table]
    texts = [(host, mount.point, mount.type, mount.source) for host, mount in mounts]
    _write_rows(file.create_group("file_facts"), ("path", "key", "value"), facts)
    _write_rows(file.create_group("environment"), ("name", "value"), list(metadata.environment.items()))
    nodes = file.create_group("nodes")
    put_texts(nodes, "host", list(metadata.processors), "node")
    _put_numbers(nodes, "processors", list(metadata.processors.values()), "")
    table = file.create_group("mounts")
    _write_rows(table, ("host", "point", "type", "source"), texts)
    _put_numbers(table, "block_bytes", [mount.block_bytes for _, mount in mounts], "bytes")


def _write_losses(group: h5py.Group, metadata: RunMetadata) -> None:
    put_texts(group, "reason", list(metadata.dropped_by_reason), "why events were dropped")
    _put_numbers(group, "events", list(metadata.dropped_by_reason.values()), "")
    group.attrs["calls_on_other_paths"] = metadata.calls_on_other_paths
    if (kernel := metadata.kernel_bytes) is not None:
        for name in KERNEL_BYTES:
            group.attrs[f"kernel_bytes_{name}"] = getattr(kernel, name)
        put_texts(group, "kernel_facts", kernel.facts, "facts of the account of bytes")
        put_texts(group, "libraries", kernel.libraries, "shared libraries that are not recorded")
        put_texts(group, "unrecorded", kernel.unrecorded, "why a program could not be recorded")


def _write_flights(group: h5py.Group, metadata: RunMetadata) -> None:
    put_texts(group, "operation", list(metadata.flights), "operation of the requests")
    for name in Flights._fields:
        unit = "ns" if name.endswith("_ns") else ""
        _put_numbers(group, name, [getattr(sums, name) for sums in metadata.flights.values()], unit)


def _write_rows(group: h5py.Group, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for place, name in enumerate(names):
        put_texts(group, name, [row[place] for row in rows], f"{name} in each row")


def _write_processes(group: h5py.Group, processes: Sequence[Process]) -> None:
    for field in fields(Process):
        values: list[Any] = [getattr(process, field.name) for process in processes]
        if field.name == "command":
            commands = ["\x1f".join(words) for words in values]
            put_texts(group, "command", commands, "words separated by the byte 0x1f")
        elif field.type == "str":
            put_texts(group, field.name, values, f"{field.name} of each process")
        else:
            _put_numbers(group, field.name, values, _PROCESS_UNITS.get(field.name, ""))


def _put_numbers(group: h5py.Group, name: str, values: Sequence[int], unit: str) -> None:
    put_column(group, name, np.array(values, dtype=np.int64), unit)
