"""The output of ``ensio-simulate`` as a source of runs, with all events or as a summary.

testbed/simulate/output.h describes the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.model.lustre import encode_layout
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import KINDS, RegionTable
from ensembles.passes.damage import DamageReport
from ensembles.passes.reading import ReadRequest
from ensembles.summaries.cells import CELL_DTYPES, CellSummary
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.summaries.ranktable import RankTable

EVENT = np.dtype(
    [
        ("offset", "i8"),
        ("requested", "u8"),
        ("moved", "i8"),
        ("start", "i8"),
        ("duration", "i8"),
        ("rank", "u4"),
        ("file", "u4"),
        ("call", "u2"),
        ("depth", "u1"),
        ("carried", "u1"),
        ("cell", "u4"),  # set for the longest calls only
    ]
)
"""struct output_event."""

STRIPING = np.dtype(
    [("stripe_bytes", "i8"), ("count", "i4"), ("first_target", "i4"), ("targets", "i4"), ("padding", "i4")]
)
"""struct output_striping."""

MOST_TARGETS = 64
"""Targets of a file that its layout lists; as in `ensembles.model.lustre`, the last ones may be missing."""

_HEAD = "ensio-simulation 1"

OTHER_VERSION = "ensio-simulate and ensio have different versions: install both again from the same sources"


@dataclass(frozen=True)
class Text:
    """The file ``text`` with the counts and names of a simulation."""

    tasks: int
    tasks_per_node: int
    events: int
    model_calls: int
    end_ns: int  # End of the last task, virtual time
    calls: tuple[Call, ...]
    steps: tuple[tuple[str, int], ...]  # Name of the phase and number of the repetition of each step
    files: list[str]  # Paths; index 0 means no file
    # ``slow_target``, ``straggler_node``, ``straggler_task``: what faults slow down; -1: none
    slow: dict[str, int]

    @classmethod
    def read(cls, folder: Path) -> Text:
        """Read it from the output folder of the program."""
        lines = iter((folder / "text").read_text("utf-8", "surrogateescape").splitlines())
        if next(lines) != _HEAD:
            raise EnsioError(OTHER_VERSION)

        def number(key: str) -> int:
            found, value = next(lines).split(" ", 1)
            if found != key:
                raise EnsioError(OTHER_VERSION)
            return int(value)

        next(lines), next(lines)  # mode and seed, which the caller knows
        tasks, per_node = number("tasks"), number("tasks_per_node")
        end_ns, events, model_calls = number("end_ns"), number("events"), number("model_calls")
        slow = {key: number(key) for key in ("slow_target", "straggler_node", "straggler_task")}
        calls = tuple(Call(*next(lines).split(" ")) for _ in range(number("calls")))
        steps = tuple(next(lines).rsplit(" ", 1) for _ in range(number("steps")))
        files = ["", *(next(lines) for _ in range(number("files")))]
        named = tuple((phase, int(repetition)) for phase, repetition in steps)
        return cls(tasks, per_node, events, model_calls, end_ns, calls, named, files, slow)


def phase_starts_ns(folder: Path) -> np.ndarray:
    """Read the starts of all steps and the end of the last one: int64, shape (steps + 1,)."""
    return np.fromfile(folder / "phases", "i8")


def read_file_facts(folder: Path, files: list[str]) -> dict[str, dict[str, str]]:
    """Read the layouts (``lustre.lov``) by path, of files that calls reached, as the recorder stores them."""
    facts = {}
    for path, layout in zip(files[1:], np.fromfile(folder / "striping", STRIPING).tolist(), strict=True):
        stripe_bytes, count, first, targets, _ = layout
        if not count or stripe_bytes >= 1 << 32:
            continue
        objects = [(first + number) % targets for number in range(min(count, MOST_TARGETS))]
        component = {"counters": (stripe_bytes, count, -1), "pool": "", "targets": objects}
        facts[path] = {"lustre.lov": encode_layout([component]) or ""}
    return facts


def plan_regions(folder: Path, text: Text) -> RegionTable:
    """Return the steps as phases, which all tasks start together when they leave a barrier."""
    starts = phase_starts_ns(folder)
    names = list(dict.fromkeys(phase for phase, _ in text.steps))
    number = np.array([names.index(phase) for phase, _ in text.steps], "u4")
    steps, n = len(number), len(number) * text.tasks
    columns = {
        "rank": np.repeat(np.arange(text.tasks, dtype="u4"), steps),
        "thread": np.zeros(n, "u2"),
        "kind": np.full(n, KINDS.index("phase"), "u1"),
        "name": np.tile(number, text.tasks),
        "start": np.tile(starts[:-1], text.tasks),
        "duration": np.tile(np.diff(starts), text.tasks),
        "ended": np.ones(n, "u1"),
    }
    return RegionTable(columns, names)


class SimulatedTrace:
    """All events, in the form that `ImportedSource` reads."""

    def __init__(self, folder: Path, text: Text, metadata: RunMetadata, named_phases: bool = True) -> None:
        self._folder = folder
        self._text = text
        self._named_phases = named_phases
        self.metadata = metadata

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of columns in the order of completion."""
        with (self._folder / "events").open("rb") as file:
            while len(rows := np.fromfile(file, EVENT, max_events)):
                yield {name: rows[name].astype(COLUMNS[name]) for name in EVENT.names or () if name != "cell"}

    def regions(self) -> RegionTable:
        """Return the phases, if the program names them."""
        regions = plan_regions(self._folder, self._text)
        return regions if self._named_phases else regions[:0]

    def summary(self) -> CellSummary | None:
        """Return None: the summary follows from the events."""
        return None

    def ranks(self) -> RankTable | None:
        """Return None: the table follows from the events."""
        return None


class SimulatedProfile:
    """The summary of all calls without events, in the form that `write_trace_file` reads."""

    is_complete = True
    capacity = 0

    def __init__(self, folder: Path, text: Text, metadata: RunMetadata) -> None:
        self._folder = folder
        self._text = text
        self.metadata = metadata
        self.spool_identities: dict[str, tuple[int, int]] = {}

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Return no chunks: a profile has no events."""
        return iter(())

    def regions(self) -> RegionTable:
        """Return the phases."""
        return plan_regions(self._folder, self._text)

    def summary(self) -> CellSummary:
        """Return the totals by function, size class and ordinal class."""
        cells = np.fromfile(self._folder / "cells", list(CELL_DTYPES.items()))
        bins = np.fromfile(self._folder / "bins", "i8").reshape(-1, 3).T
        longest = np.fromfile(self._folder / "longest", EVENT)
        arrays: dict[str, np.ndarray] = {name: cells[name] for name in CELL_DTYPES}
        arrays |= dict(zip(("bin_cell", "bin", "bin_count"), bins, strict=True))
        arrays["longest_cell"] = longest["cell"].astype(np.int64)
        missing = np.zeros(len(longest), np.int64)
        for name, dtype in COLUMNS.items():
            column = longest[name] if name in (EVENT.names or ()) else missing
            arrays[f"longest_{name}"] = column.astype(dtype)
        summary = CellSummary(self._text.calls, self._text.files)
        # The file has cells in the order of their first calls; merging sorts them by key.
        summary.merge(CellSummary.from_arrays(arrays, self._text.calls, self._text.files))
        return summary

    def ranks(self) -> RankTable:
        """Return the totals by rank and function."""
        rows = np.memmap(self._folder / "ranks", "i8", "r").reshape(-1, len(RANK_COLUMNS))
        table = RankTable(self._text.calls)
        table.add_rows(self._text.calls, dict(zip(RANK_COLUMNS, rows.T, strict=True)))
        return table
