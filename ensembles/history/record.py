"""What the history keeps of a run: its summaries, in at most 64 KiB however long the run was."""

from __future__ import annotations

import hashlib
import os
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ensembles.comparison.compare import read_run
from ensembles.comparison.difference import ReadRun
from ensembles.comparison.times import ComparedSums
from ensembles.comparison.units import ComparedCalls
from ensembles.files.untrusted import inflate
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import storable_text
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import BIN_BITS, BIN_COUNT

if TYPE_CHECKING:
    from ensembles.run.run import Run

MOST_BYTES = 1 << 16
"""Largest size of an encoded record."""

_MOST_PLAIN_BYTES = 64 * MOST_BYTES

MOST_PHASES = 256
"""Phases of which a record holds the times; of more, it holds the longest."""

VERSION = 1


class KindRecord(msgspec.Struct, frozen=True, array_like=True):
    """The calls of one layer and operation.

    Attributes
    ----------
    layer, op : str
    calls, bytes : int
        Number of calls, and bytes that they moved (0 but for reads and writes).
    time_s, min_s, max_s : float
        Sum, least and greatest of the durations.
    bins, counts : list of int
        Bins of the bin law that hold calls, increasing, and the number of calls in each.
    """

    layer: str
    op: str
    calls: int
    bytes: int
    time_s: float
    min_s: float
    max_s: float
    bins: list[int]
    counts: list[int]

    def sample(self) -> CountedDurations:
        """Return the distribution of the durations."""
        counts = np.zeros(BIN_COUNT, np.int64)
        counts[self.bins] = self.counts
        return CountedDurations.from_counts(counts, self.min_s, self.max_s)


class PhaseRecord(msgspec.Struct, frozen=True, array_like=True):
    """One phase: its number from 1, its name or None, start and duration in seconds, calls and bytes."""

    phase: int
    name: str | None
    start_s: float
    time_s: float
    calls: int
    bytes_read: int
    bytes_written: int


class FindingRecord(msgspec.Struct, frozen=True, array_like=True):
    """One finding of ``ensio diagnose``: id, severity, the sentence that says what happens, and its part of
    the run in s; 0: an earlier ensio wrote the record."""

    id: str
    severity: str
    title: str
    share_s: float = 0.0


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The summaries of a run that a history keeps.

    Attributes
    ----------
    version : int
        Version of this format.
    identity : str
        Equal for two records exactly if they are of the same run, wherever its files are.
    path, program, job : str
        Path of the run when it was added, program, number of the batch job.
    command : list of str
    start_unix_ns : int
        Start of the run.
    tasks, nodes : int
    totals : dict of str to float
        As in `ensembles.comparison.times.Total`.
    rates_bytes_per_s : dict of str to float
        Mean rate of ``read`` and ``write`` while bytes move; without those that are not known.
    kinds : list of KindRecord
        Calls by layer and operation, those with most time first.
    phases : list of PhaseRecord
        In the order of time; at most `MOST_PHASES`.
    findings : list of FindingRecord
    coarsened : int
        Bins are merged by ``2**coarsened``, so that the record is not larger than `MOST_BYTES`.
    notes : list of str
        Caveats of the run.
    recorder : str
        What recorded it; ``""``: not known, or an earlier ensio wrote the record.
    """

    version: int = VERSION
    identity: str
    path: str
    program: str
    job: str
    command: list[str]
    start_unix_ns: int
    tasks: int
    nodes: int
    totals: dict[str, float]
    rates_bytes_per_s: dict[str, float]
    kinds: list[KindRecord]
    phases: list[PhaseRecord]
    findings: list[FindingRecord]
    coarsened: int = 0
    notes: list[str]
    recorder: str = ""

    @classmethod
    def of_run(cls, run: Run) -> RunRecord:
        """Read a run.

        Examples
        --------
        >>> from ensembles.history.record import RunRecord
        >>> record = RunRecord.of_run(en.open("ensio-ior"))
        >>> record.tasks, {kind.op: kind.calls for kind in record.kinds}["write"]
        (8, 160)
        >>> len(record.encode()) < 4096
        True
        """
        from ensembles.run.anonymise import hash_names, site_names
        from ensembles.run.selection import Selection

        names = site_names()
        if names is not None:
            hash_names(run, names)
        lacks = "" if run.reading.has_calls else run.reading.lacks
        if not lacks:
            read = read_run(run, Selection.parse(), single=False)
            lacks = run.reading.lacks
        if lacks:
            raise EnsioError(f"{run.path} is not added: {lacks}")
        if read.calls.counts:
            raise EnsioError(f"{run.path} holds counters, not calls: ensio history add --darshan {run.path}")
        path, notes = os.path.abspath(run.path), read.notes
        if names is not None:
            path, notes = names.path(path), list(map(names.sentence, notes))
        return cls(
            identity=_identity(run, read.sums.totals),
            path=path,
            program=run.info.program,
            job=run.info.job,
            command=list(run.info.command),
            start_unix_ns=run.info.origin_unix_ns,
            tasks=run.tasks,
            nodes=len(set(run.info.hosts)),
            totals=read.sums.totals,
            rates_bytes_per_s=_rates(run, read.sums.totals),
            kinds=_kinds(read),
            phases=_phases(run),
            findings=_findings(run),
            notes=notes,
            recorder=read.recorder,
        )

    def encode(self) -> bytes:
        """Encode the record in at most `MOST_BYTES`; bins are merged where it would be larger."""
        record = self
        for coarsened in range(self.coarsened, BIN_BITS + 8):
            plain = _packed(record)
            encoded = zlib.compress(plain, 6)
            if len(encoded) <= MOST_BYTES and len(plain) <= _MOST_PLAIN_BYTES:
                return encoded
            record = record._coarser(coarsened + 1)
        raise EnsioError(
            f"{self.path}: its summary does not fit into {MOST_BYTES >> 10} KiB: it is not added"
        )

    @classmethod
    def decode(cls, encoded: bytes) -> RunRecord:
        """Decode a record."""
        try:
            record = msgspec.msgpack.decode(inflate(encoded, _MOST_PLAIN_BYTES), type=cls)
        except (TypeError, ValueError, msgspec.DecodeError):
            raise EnsioError("the record is damaged") from None
        if record.version > VERSION:
            raise EnsioError("the record is of a later ensio")
        return record

    def _coarser(self, coarsened: int) -> RunRecord:
        kinds = [_merged_bins(kind, coarsened) for kind in self.kinds]
        phases = _longest(self.phases, MOST_PHASES >> coarsened)
        return msgspec.structs.replace(
            self, kinds=kinds, phases=phases, coarsened=coarsened, command=self.command[:16]
        )

    def kind(self, layer: str | None, op: str) -> KindRecord | None:
        """Return the calls of a layer and operation; None: there are none."""
        return next((kind for kind in self.kinds if (kind.layer, kind.op) == (layer, op)), None)

    @property
    def caveats(self) -> list[str]:
        """The notes of the run, and whether its bins were merged; earlier versions stored that as a note."""
        if not self.coarsened:
            return self.notes
        merged = (
            f"bins of its histograms are {2**self.coarsened} times as wide as usual, to fit into a record"
        )
        return list(dict.fromkeys([*self.notes, merged]))

    def as_read(self) -> ReadRun:
        """Return what a comparison takes."""
        calls = ComparedCalls()
        for kind in self.kinds:
            calls.time_s[kind.layer, kind.op] = kind.time_s
            if kind.counts:
                calls.samples[kind.layer, kind.op] = kind.sample()
            else:  # only sums are known
                calls.counts[kind.layer, kind.op] = kind.calls
        moved = {
            (kind.layer, kind.op): (kind.calls, kind.bytes)
            for kind in self.kinds
            if kind.op in ("read", "write")
        }
        totals = {"tasks": float(self.tasks), **self.totals}
        causes = {each.id: each.share_s for each in self.findings if each.share_s}
        return ReadRun(
            self.path,
            calls,
            ComparedSums(totals, moved),
            self.caveats,
            causes_s=causes,
            recorder=self.recorder,
        )

    def is_as(self, other: RunRecord) -> bool:
        """Whether the recorders of both runs see the same calls; True also if that is not known."""
        return "" in (self.recorder, other.recorder) or self.recorder == other.recorder


def _packed(record: RunRecord) -> bytes:
    try:
        return msgspec.msgpack.encode(record)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(_storable(msgspec.to_builtins(record)))


def _storable(value: Any) -> Any:
    """Return a value whose texts can be stored."""
    if isinstance(value, dict):
        return {_storable(key): _storable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_storable(entry) for entry in value]
    return storable_text(value) if isinstance(value, str) else value


def _identity(run: Run, totals: dict[str, float]) -> str:
    facts = [
        run.info.origin_unix_ns,
        run.tasks,
        next(iter(run.info.programs), run.info.program),
        *run.info.task_command,
        run.info.job,
        *sorted(set(run.info.hosts)),
    ]
    facts += [round(1e9 * totals[name]) for name in ("calls", "io_time_s", "span_s")]
    text = "\0".join(map(str, facts)).encode(errors="surrogateescape")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _kinds(read: ReadRun) -> list[KindRecord]:
    found = []
    for (layer, op), time_s in read.calls.time_s.items():
        sample = read.calls.sample((layer, op))
        counts = np.bincount(sample.bin, sample.count, BIN_COUNT).astype(np.int64)
        bins = np.flatnonzero(counts)
        found.append(
            KindRecord(
                layer,
                op,
                int(sample.total),
                int(read.sums.moved.get((layer, op), (0, 0))[1]),
                float(time_s),
                float(sample.min_s.min()),
                float(sample.max_s.max()),
                bins.tolist(),
                counts[bins].tolist(),
            )
        )
    return sorted(found, key=lambda kind: -kind.time_s)


def _merged_bins(kind: KindRecord, coarsened: int) -> KindRecord:
    """Merge neighbouring bins into the middle one of each group of ``2**coarsened``."""
    place = (np.array(kind.bins, np.int64) >> coarsened << coarsened) + (1 << coarsened >> 1)
    counts = np.bincount(np.minimum(place, BIN_COUNT - 1), kind.counts).astype(np.int64)
    bins = np.flatnonzero(counts)
    return msgspec.structs.replace(kind, bins=bins.tolist(), counts=counts[bins].tolist())


def _rates(run: Run, totals: dict[str, float]) -> dict[str, float]:
    """Return the data rates of ``ensio info``, of the directions in which they are known."""
    from ensembles.run.headline import headline_requests, rates_by_time

    found = run.summarize(headline_requests()).summaries
    moved = {"read": int(totals["bytes_read"]), "write": int(totals["bytes_written"])}
    rates = {op: rates_by_time(moved[op], op, found).get("active_bytes_per_s") for op in moved}
    return {op: rate for op, rate in rates.items() if rate}


def _phases(run: Run) -> list[PhaseRecord]:
    from ensembles.passes.summary import ignoring_run
    from ensembles.structure.phases.table import PhaseTable

    phases = run.reading.phases_of_calls
    if phases is None:
        return []
    table = run.summarize(ignoring_run(partial(PhaseTable, phases)))
    found = [
        PhaseRecord(
            one.phase, one.name, one.start_s, one.time_s, one.calls, one.bytes_read, one.bytes_written
        )
        for one in table.totals()
        if one.calls  # not steps of messages
    ]
    return _longest(found, MOST_PHASES)


def _longest(phases: list[PhaseRecord], most: int) -> list[PhaseRecord]:
    """Return the longest phases in the order of time."""
    longest = sorted(phases, key=lambda one: -one.time_s)[:most]
    return sorted(longest, key=lambda one: one.phase)


def _findings(run: Run) -> list[FindingRecord]:
    from ensembles.diagnosis.diagnose import diagnose

    return [
        FindingRecord(one.id, one.severity, one.title, float(one.share_s or 0.0))
        for one in diagnose(run).findings
    ]
