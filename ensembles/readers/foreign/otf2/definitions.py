"""Definitions of an OTF2 archive: locations (ranks and threads), files, regions, and metadata of the run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.flights import OPERATIONS, Flights
from ensembles.model.metadata import Mount, Process, RunMetadata
from ensembles.model.sites import SiteTable
from ensembles.model.units import MOST_TASKS, MOST_THREADS
from ensembles.recorder.site_places import resolve_sites

UNDEFINED = 2**64 - 1
_PROCESS_GROUP = 1
_CPU_THREAD = 1
_PIECE = re.compile(r"(.*)\+[0-9]+", re.DOTALL)
_FILE_SYSTEM = ("Mount Point", "File System", "File System Source")


class Definitions:
    """Definitions of an archive, collected in the order of the archive.

    `ranks`, `threads`, shape (locations,): rank and thread of each location, after `complete`.
    `tasks`: number of tasks, after `complete`.
    `files`: paths; the first is ``""``: no file.
    `region_names`: names of phases and regions of the program.
    `call_regions`: name, description and role of the regions that are calls.
    `paradigms`: identification of each I/O paradigm.
    """

    def __init__(self, anchor: str) -> None:
        self._anchor = anchor
        self._nodes: dict[int, tuple[str, str, int]] = {}
        self._groups: dict[int, tuple[str, int, int]] = {}
        self._locations: list[tuple[int, int, int]] = []
        self._file_numbers: list[int] = []
        self._texts: dict[tuple[str, str], list[str]] = {}
        self._facts: dict[int, dict[str, list[str]]] = {}
        self._mpi_ranks: list[int] = []
        self._named: dict[int, tuple[str, bool]] = {}
        self._origin_unix_ns: int | None = None
        self._completed = False
        self.call_regions: dict[int, tuple[str, str, int]] = {}
        self.paradigms: dict[int, str] = {}
        self.files = [""]
        self.region_names: list[str] = []
        self.counters: dict[int, str] = {}
        self.ranks = np.empty(0, "u4")
        self.threads = np.empty(0, "u2")
        self.tasks = 0

    def add(self, words: Sequence[str]) -> None:
        """Add a definition, given as a list of words."""
        what, *rest = words
        if what == "clock":
            *_, realtime = map(int, rest)
            self._origin_unix_ns = realtime if 0 < realtime < 2**63 else self._origin_unix_ns
        elif what == "node":
            self._nodes[int(rest[0])] = (rest[1], rest[2], int(rest[3]))
        elif what == "group":
            self._groups[int(rest[0])] = (rest[1], int(rest[2]), int(rest[3]))
        elif what == "location":
            self._locations.append((int(rest[0]), int(rest[2]), int(rest[3])))
        elif what == "paradigm":
            self.paradigms[int(rest[0])] = rest[1]
        elif what == "file":
            self._file_numbers.append(int(rest[0]))
            self.files.append(rest[1])
        elif what == "file property":
            self._facts.setdefault(int(rest[0]), {}).setdefault(_without_number(rest[1]), []).append(rest[2])
        elif what in ("node property", "group property"):
            self._texts.setdefault((what, _without_number(rest[1])), []).append(rest[2])
        elif what == "counter":
            self.counters[int(rest[0])] = rest[1]
        elif what == "ranks":
            self._mpi_ranks = [int(number) for number in rest]
        elif what == "region":
            self._add_region(int(rest[0]), rest[1], rest[2], int(rest[3]), rest[4] == "1")

    def _add_region(self, number: int, name: str, description: str, role: int, is_call: bool) -> None:
        self.call_regions.pop(number, None)
        self._named.pop(number, None)
        if is_call:
            self.call_regions[number] = (name, description, role)
        else:
            self._named[number] = (name, description == "ensio phase")

    def complete(self) -> None:
        """Assign ranks, threads and names after the last definition."""
        if self._completed:
            return
        self._completed = True
        if (facts := self._run_facts()) is not None:
            self._set_our_locations(facts)
        else:
            self._set_other_locations()
        numbers = np.array(self._file_numbers, "u4")
        self._sorted_files = np.argsort(numbers, kind="stable")
        self._sorted_numbers = numbers[self._sorted_files]
        names = {
            name: place for place, name in enumerate(dict.fromkeys(name for name, _ in self._named.values()))
        }
        self.region_names = list(names)
        self._name_of = {number: names[name] for number, (name, _) in self._named.items()}

    def _set_our_locations(self, facts: dict[str, Any]) -> None:
        """Assign ranks and threads in an archive of ensio."""
        tasks = facts.get("tasks")
        if not isinstance(tasks, int) or not 0 <= tasks <= MOST_TASKS:
            raise self._damaged()
        self.tasks = max(tasks, 1 + max((group for _, _, group in self._locations), default=-1))
        if self.tasks > MOST_TASKS:
            raise self._damaged()
        self.ranks = np.array([group for _, _, group in self._locations], "u4")
        self.threads = np.array([number & MOST_THREADS for number, _, _ in self._locations], "u2")

    def _set_other_locations(self) -> None:
        """Assign ranks and threads in another archive: threads in the order of their definitions."""
        order = self._order_of_groups()
        self.tasks = len(order)
        self.ranks = np.zeros(len(self._locations), "u4")
        self.threads = np.zeros(len(self._locations), "u2")
        seen = dict.fromkeys(order, 0)
        for place, (_, kind, group) in enumerate(self._locations):
            if kind == _CPU_THREAD and group in order:
                self.ranks[place], self.threads[place] = order[group], min(seen[group], MOST_THREADS)
                seen[group] += 1

    def _order_of_groups(self) -> dict[int, int]:
        """Return the rank of each process group: MPI ranks first, then the order of definitions."""
        group_of = {number: group for number, _, group in self._locations}
        order: dict[int, int] = {}
        for number in self._mpi_ranks:
            if number in group_of:
                order.setdefault(group_of[number], len(order))
        for number, (_, kind, _) in self._groups.items():
            if kind == _PROCESS_GROUP:
                order.setdefault(number, len(order))
        return order

    def _run_facts(self) -> dict[str, Any] | None:
        """Return the metadata of the run in an archive of ensio; None for other archives."""
        pieces = self._texts.get(("node property", "ensio.run"))
        return None if pieces is None else self._object("".join(pieces))

    def _object(self, text: str) -> dict[str, Any]:
        try:
            told = json.loads(text)
            if not isinstance(told, dict):
                raise ValueError("no object")
            return told
        except (ValueError, RecursionError) as error:
            raise self._damaged() from error

    def _damaged(self) -> EnsioError:
        return EnsioError(
            f"{self._anchor} cannot be read: the metadata of its run are damaged; copy the archive again"
        )

    def read_files(self, numbers: np.ndarray) -> np.ndarray:
        """Translate file numbers of the archive to indices into `files`."""
        if not len(self._sorted_numbers):
            return np.zeros(len(numbers), "u4")
        at = np.searchsorted(self._sorted_numbers, numbers)
        at[at == len(self._sorted_numbers)] = 0
        found = self._sorted_numbers[at] == numbers
        return np.where(found, self._sorted_files[at] + 1, 0).astype("u4")

    @cached_property
    def _site_texts(self) -> list[str]:
        """Texts of the call sites by number; the first is empty. Older archives and others have none."""
        facts = self._run_facts() or {}
        try:
            return ["", *_texts(facts.get("sites", [""]))[1:]][: 1 << 16]
        except TypeError as error:
            raise self._damaged() from error

    def read_sites(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers of call sites, shape (n,); 0 for those that the archive does not define."""
        known: np.ndarray = np.where(numbers < len(self._site_texts), numbers, 0).astype("u2")
        return known

    def read_regions(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return kind and name of regions, as in `RegionTable`."""
        unique, place = np.unique(numbers, return_inverse=True)
        kinds = np.array([0 if self._named[number][1] else 1 for number in unique.tolist()], "u1")
        names = np.array([self._name_of[number] for number in unique.tolist()], "u4")
        return kinds[place], names[place]

    def metadata(self) -> RunMetadata:
        """Make the metadata of the run, without its calls."""
        self.complete()
        facts = self._run_facts()
        try:
            return self._our_metadata(facts) if facts is not None else self._other_metadata()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise self._damaged() from error

    def _our_metadata(self, facts: dict[str, Any]) -> RunMetadata:
        processes = []
        for (what, name), pieces in self._texts.items():
            if what == "group property" and name.startswith("ensio.process."):
                told = self._object("".join(pieces))
                told["command"] = tuple(_texts(told["command"]))
                processes.append((int(name.rpartition(".")[2]), _checked(Process(**told))))
        mounts = {
            _text(host): tuple(_checked(Mount(**mount)) for mount in table)
            for host, table in dict(facts["mounts"]).items()
        }
        error_s, step_s = facts["clock_error_s"], facts.get("clock_step_s")
        return RunMetadata(
            tasks=self.tasks,
            threads=min(int(facts["threads"]), MOST_TASKS),
            origin_unix_ns=_time(facts["origin_unix_ns"]),
            calls=(),
            files=self.files,
            processes=[process for _, process in sorted(processes, key=lambda one: one[0])],
            notes=_texts(facts["notes"]),
            hosts=_texts(facts["hosts"]),
            clock_error_s=None if error_s is None else float(error_s),
            clock_step_s=None if step_s is None else float(step_s),
            environment={_text(name): _text(value) for name, value in dict(facts["environment"]).items()},
            mounts=mounts,
            processors={_text(host): int(count) for host, count in dict(facts.get("processors", {})).items()},
            sites=SiteTable(self._site_texts, resolve_sites),
            flights=_flights(facts.get("flights", {})),
            file_facts=self._file_facts(),
            mode=_text(facts["mode"]),
            job=_text(facts["job"]),
            user=_text(facts["user"]),
            libc=_text(facts["libc"]),
            mpi=_text(facts["mpi"]),
        )

    def _file_facts(self) -> dict[str, dict[str, str]]:
        path_of = dict(zip(self._file_numbers, self.files[1:], strict=True))
        facts: dict[str, dict[str, str]] = {}
        for number, known in self._facts.items():
            own = {name: "".join(pieces) for name, pieces in known.items() if name not in _FILE_SYSTEM}
            if own and number in path_of:
                facts[path_of[number]] = own
        return facts

    def _other_metadata(self) -> RunMetadata:
        order = self._order_of_groups()
        processes = []
        threads = np.bincount(self.ranks, minlength=self.tasks).tolist()
        for number, rank in order.items():
            processes.append(self._process_of(number, rank, threads[rank]))
        hosts = list(dict.fromkeys(process.host for process in processes if process.host))
        return RunMetadata(
            tasks=self.tasks,
            threads=sum(kind == _CPU_THREAD for _, kind, _ in self._locations),
            origin_unix_ns=self._origin_unix_ns or 0,
            calls=(),
            files=self.files,
            processes=sorted(processes, key=lambda process: process.rank),
            notes=[],
            mode="trace",
            hosts=hosts,
            file_facts=self._file_facts(),
        )

    def _process_of(self, group: int, rank: int, threads: int) -> Process:
        return Process(
            rank=rank,
            host=self._host_of(group),
            start_unix_ns=self._origin_unix_ns or 0,
            end_unix_ns=self._origin_unix_ns or 0,
            threads=threads,
            source=self._anchor,
        )

    def _host_of(self, group: int) -> str:
        """Return the name of the nearest system tree node of class "node" above a group, or of any class."""
        at = self._groups[group][2] if group in self._groups else UNDEFINED
        nearest = ""
        for _ in range(16):  # real trees are less deep; damaged ones may be cyclic
            if at not in self._nodes:
                break
            name, kind, at = self._nodes[at]
            if kind.lower() == "node":
                return name
            nearest = nearest or name
        return nearest

    def notes(self) -> list[str]:
        """Describe what the archive lacks."""
        if self._run_facts() is not None:
            return []
        told = [
            f"{self._anchor} was written by another tool: failed calls are known only if they moved no bytes"
        ]
        if self._origin_unix_ns is None:
            told.append(
                f"{self._anchor} has no date of recording: its times are relative to an unknown origin"
            )
        return told


def _without_number(name: str) -> str:
    """Return the name of a property that is split into pieces NAME, NAME+1, ..."""
    match = _PIECE.fullmatch(name)
    return match[1] if match else name


def _flights(told: Any) -> dict[str, Flights]:
    """Return the sums of non-blocking requests by operation."""
    found = {_text(op): Flights(*map(_time, list(sums))) for op, sums in dict(told).items()}
    if any(op not in OPERATIONS or not each.requests for op, each in found.items()):
        raise ValueError("sums of unknown operations")
    return found


def _text(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError("no text")
    return told


def _texts(told: Any) -> list[str]:
    return [_text(word) for word in list(told)]


def _time(told: Any) -> int:
    if not isinstance(told, int) or not 0 <= told < 2**63:
        raise ValueError("no time")
    return told


def _checked(record: Any) -> Any:
    """Check that the members of a process or a mount have their declared types and fit into 64 bits."""
    for field in fields(record):
        value = getattr(record, field.name)
        kind = {"str": str, "int": int, "bool": bool}.get(str(field.type), tuple)
        fits = not isinstance(value, int) or -(2**63) <= value < 2**63
        if not isinstance(value, kind) or not fits:
            raise TypeError(f"{field.name} is something else")
    return record
