"""What libraries make of requests, and the time inside them and in the recorder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.calls import STORAGE
from ensembles.model.levels import A_TENTH, MOST, NEARLY_ALL, RARE, SMALL_BYTES
from ensembles.model.units import DEFLATE_RATIO, MOST_NAMED, bytes_text, seconds_text, share_text, size_text

if TYPE_CHECKING:
    from ensembles.model.events import Call
    from ensembles.model.run_info import RunInfo
    from ensembles.summaries.layer_traffic import LayerTraffic
    from ensembles.summaries.runtotals import LayerTimes


LIBRARIES = {"hdf5": "HDF5", "mpiio": "MPI-IO", "netcdf": "netCDF", "pnetcdf": "PnetCDF"}
"""Names of the layers above the calls of the file system."""

WITH_WAITS = ("mpiio", "pnetcdf")
"""Layers in which tasks also wait while another one is in the storage calls of all."""

LEAST_SHARE = A_TENTH
"""Share of the time in I/O calls from which on time inside libraries is named, and of this its functions;
and share of the most bytes, in a library and below, from which reads or writes are."""


_WORK = {
    "hdf5": "filters such as compression, conversion of types, copies",
    "mpiio": "exchange of data, waiting for other tasks, copies",
    "netcdf": "conversion of types, copies",
    "pnetcdf": "exchange of data, conversion of types, waiting for other tasks, copies",
}
_WORK_ON_OBJECTS = {
    "hdf5": "work on its objects (groups, datasets, attributes) and on their metadata",
    "netcdf": "work on definitions: dimensions, variables and attributes that it reads, makes and writes",
}
"""The same where most of the time is in calls that move no data of the program."""

_DATA_CALLS = ("H5Dread", "H5Dwrite", "H5Dget_chunk", "nc_get_", "nc_put_", "nc_read", "nc_write")


def layers_with_storage(traffic: LayerTraffic) -> frozenset[str]:
    """Return the libraries whose storage calls were recorded, so that the rest of their time is known.

    Outermost layers inside whose calls storage calls move the bytes, perhaps compressed (`DEFLATE_RATIO`),
    and libraries that only calls of these layers make.

    Examples
    --------
    >>> from ensembles.structure.libraries import layers_with_storage
    >>> from ensembles.summaries.layer_traffic import LayerTraffic, Traffic
    >>> traffic = LayerTraffic()
    >>> traffic.outer["hdf5", "write"] = Traffic(1, 4096)
    >>> layers_with_storage(traffic)
    frozenset()
    >>> traffic.inner["hdf5", "other", "posix", "write"] = Traffic(1, 512)
    >>> layers_with_storage(traffic)
    frozenset({'hdf5'})
    """
    stored: dict[tuple[str, str], int] = {}
    around: dict[str, set[str]] = {}
    for (layer, _, by, op), sums in traffic.inner.items():
        around.setdefault(by, set()).add(layer)
        if by in STORAGE:
            stored[layer, op] = stored.get((layer, op), 0) + sums.bytes
    outermost = {
        layer
        for (layer, op), bytes_ in stored.items()
        if bytes_ * DEFLATE_RATIO >= traffic.outer.get((layer, op), (0, 1))[1]
    }
    begins = {layer for layer, _ in traffic.outer}
    inner = {layer for layer, outer in around.items() if layer not in begins and outer <= outermost}
    return frozenset(name for name in outermost | inner if name in LIBRARIES)


def library_rows(times: LayerTimes, traffic: LayerTraffic, recorder_s: float = 0.0) -> list[dict[str, Any]]:
    """Return the time inside each library, and its functions with most of it.

    The time of the recorder between the calls inside, `recorder_s` of each, is not theirs.
    """
    given = sum(traffic.outer.get((layer, "write"), (0, 0))[1] for layer in _WORK_ON_OBJECTS)
    stored = sum(
        sums.bytes
        for (layer, _, by, op), sums in traffic.inner.items()
        if layer in _WORK_ON_OBJECTS and by in STORAGE and op == "write"
    )
    # Chunks that wait in a cache pass their filters in flushes and closes.
    filters = ("sync", "close") if 0 < stored < NEARLY_ALL * given else ()
    own_ns: dict[Call, float] = {
        call: times.exclusive_ns(call) for call in times.calls if not call.waits_for_tasks
    }
    layers = layers_with_storage(traffic)
    inside_ns = max(sum(ns for call, ns in own_ns.items() if call.layer in layers), 1)
    between_ns = between_inner_ns(1e9 * recorder_s) * sum(sums.calls for sums in traffic.inner.values())
    left = 1 - min(between_ns / inside_ns, 1.0)
    io_ns = sum(own_ns.values())
    own_ns = {call: ns * left if call.layer in layers else ns for call, ns in own_ns.items()}
    rows = []
    for layer in layers:
        mine = sorted(
            (
                (ns, ns + times.inner_ns.get(call, 0), call.name)
                for call, ns in own_ns.items()
                if call.layer == layer
            ),
            reverse=True,
        )
        total_ns = sum(ns for ns, _, _ in mine)
        moving = filters if layer in _WORK_ON_OBJECTS else ()
        data_ns = sum(
            ns
            for call, ns in own_ns.items()
            if call.layer == layer and (call.name.startswith(_DATA_CALLS) or call.op in moving)
        )
        rows.append(
            {
                "layer": layer,
                "time_s": total_ns * 1e-9,
                "io_time_s": io_ns * 1e-9,
                "io_share": total_ns / io_ns if io_ns else 0.0,
                **({"recorder_s": total_ns * (1 / left - 1) * 1e-9} if 0 < left < 1 else {}),
                "data_share": data_ns / max(total_ns, 1),
                "calls": [
                    {"call": name, "time_s": ns * 1e-9, "whole_s": whole * 1e-9}
                    for ns, whole, name in mine[:MOST_NAMED]
                    if ns >= LEAST_SHARE * total_ns
                ],
            }
        )
    return sorted(rows, key=lambda row: (-row["time_s"], row["layer"]))


def library_sentences(rows: Iterable[Mapping[str, Any]] | None, without: Collection[str] = ()) -> list[str]:
    """Return a sentence on each library that takes `LEAST_SHARE` of the time in I/O calls or more."""
    return [
        f"{seconds_text(row['time_s'])} of the {seconds_text(row['io_time_s'])} in I/O calls "
        f"({share_text(row['io_share'])}) passed inside {LIBRARIES[row['layer']]}, not in {_elsewhere(row)}: "
        f"{_work_of(row)}. Most of it: "
        + ", ".join(map(_of_function, row["calls"]))
        + (f". {seconds_text(row['recorder_s'])} are the recorder's" if "recorder_s" in row else "")
        for row in rows or ()
        if row["io_share"] >= LEAST_SHARE and row["layer"] not in without
    ]


def _work_of(row: Mapping[str, Any]) -> str:
    if row["data_share"] < MOST and row["layer"] in _WORK_ON_OBJECTS:
        return _WORK_ON_OBJECTS[row["layer"]]
    return _WORK[row["layer"]]


def _elsewhere(row: Mapping[str, Any]) -> str:
    return "storage calls of the same task" if row["layer"] in WITH_WAITS else "the file system"


def _of_function(entry: Mapping[str, Any]) -> str:
    return f"{seconds_text(entry['time_s'])} of {seconds_text(entry['whole_s'])} in {entry['call']}"


def library_share_text(rows: Iterable[Mapping[str, Any]] | None) -> str:
    """Return which part of the time in I/O calls passed inside libraries; ``""`` below `LEAST_SHARE`.

    Libraries `WITH_WAITS` are left out: their tasks may wait for the file system, too.
    """
    of = " of the time in I/O calls"
    parts = []
    for row in rows or ():
        if row["io_share"] >= LEAST_SHARE and row["layer"] not in WITH_WAITS:
            parts.append(f"{share_text(row['io_share'])}{of} inside {LIBRARIES[row['layer']]}")
            of = ""
    return f"{' and '.join(parts)}, not in the file system" if parts else ""


CALL_S = {"trace": (55e-9, 115e-9), "tail": (28e-9, 110e-9), "profile": (22e-9, 100e-9)}
"""Time that the recorder takes for a call on an open file by its mode, the least and the most on three
machines, idle and busy (docs/reference/scaling.md)."""

CLOCK_NS = 20
"""The part of it within the recorded duration: one reading of the clock (docs/reference/scaling.md)."""

PYTHON_LINES_S = (6e-6, 15e-6)
"""The same with ``ENSIO_PYTHON_LINES``: without functions of a library between the line and the call, and
with three of them (docs/user/settings.md)."""


def between_inner_ns(recorder_ns: float) -> float:
    """Return what the recorder takes of the time of a call for each call inside, of what that costs it."""
    return max(recorder_ns - CLOCK_NS, 0.0)


def reads_python_lines(environment: Mapping[str, str]) -> bool:
    """Whether the recorder read lines of Python, by the environment of a run."""
    return environment.get("ENSIO_PYTHON_LINES", "0") not in ("", "0")


def recorder_cost_s(info: RunInfo, calls: int, run_s: float) -> tuple[float, float]:
    """Return the least and the most time of the recorder for each of these calls; 0: next to nothing."""
    known = CALL_S.get(info.mode, CALL_S["trace"]) if info.is_native else (0.0, 0.0)
    low_s, high_s = PYTHON_LINES_S if reads_python_lines(info.environment) else known
    return (low_s, high_s) if low_s * calls >= RARE * run_s * max(info.threads, 1) else (0.0, 0.0)


def recorder_text(info: RunInfo, calls: int, run_s: float) -> str:
    """Say what the recorder took of a run; ``""`` if next to nothing."""
    low_s, high_s = recorder_cost_s(info, calls, run_s)
    at_ends = f"took {seconds_text(info.recorder_s)} at starts and ends of processes"
    at_ends *= info.recorder_s > RARE * run_s
    if not high_s:
        return at_ends
    lines = "to read lines of Python " * (high_s == PYTHON_LINES_S[1])
    return (
        f"took about {seconds_text((low_s + high_s) / 2 * calls)} in all, {seconds_text(low_s * calls)} to "
        f"{seconds_text(high_s * calls)}: {seconds_text(low_s)} to {seconds_text(high_s)} {lines}for each of "
        f"{calls:,} calls, most of it between calls and in calls around others"
        + f"; {at_ends}"
        * bool(at_ends)
    )


AMPLIFIED = 1.2
"""Bytes that a layer below moves for each byte of the program from which on they are named."""


PIECES = 8


def traffic_rows(traffic: LayerTraffic) -> list[dict[str, Any]]:
    """Return what each library moved by the reads and writes of other layers inside its calls.

    A row for each layer of outermost calls, operation ``"read"`` or ``"write"``, and layer below: ``layer``,
    ``op``, ``by``, ``calls`` and ``bytes`` of the layer itself, ``inner_calls`` and ``inner_bytes`` of the
    layer below, ``mean_bytes`` and ``inner_mean_bytes`` of a call (None: no call), ``amplification`` (inner
    bytes by bytes; None: no bytes), and ``read_in_writes_bytes``, what the layer below read in calls that
    write.
    """
    pairs = dict.fromkeys((layer, op, by) for layer, _, by, op in traffic.inner)
    rows = []
    for layer, op, by in pairs:
        outer = traffic.outer.get((layer, op))
        calls, bytes_ = outer or (0, 0)
        inside = [
            sums
            for (outer_layer, outer_op, below, inner_op), sums in traffic.inner.items()
            if (outer_layer, below, inner_op) == (layer, by, op) and (op, outer_op) != ("read", "write")
        ]
        inner_calls, inner_bytes = (sum(column) for column in zip((0, 0), *inside, strict=True))
        read_in_writes = traffic.inner.get((layer, "write", by, "read")) if op == "write" else None
        rows.append(
            {
                "layer": layer,
                "op": op,
                "by": by,
                "calls": calls,
                "bytes": bytes_,
                "inner_calls": inner_calls,
                "inner_bytes": inner_bytes,
                "mean_bytes": bytes_ / calls if calls else None,
                "inner_mean_bytes": inner_bytes / inner_calls if inner_calls else None,
                "amplification": inner_bytes / bytes_ if bytes_ else None,
                "read_in_writes_bytes": read_in_writes.bytes if read_in_writes else 0,
            }
        )
    return sorted(rows, key=lambda row: (-row["inner_bytes"], row["layer"], row["op"], row["by"]))


def traffic_sentences(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return sentences on libraries that move more bytes than the program asked for, or small pieces."""
    sentences = []
    most = max((row["bytes"] for row in rows), default=0)
    for row in rows:
        if row["by"] not in STORAGE or not row["bytes"] or not row["inner_calls"]:
            continue
        if max(row["bytes"], row["inner_bytes"]) < LEAST_SHARE * most or row["amplification"] < 1 / AMPLIFIED:
            continue  # little, or the layer below was not recorded as a whole
        more = row["amplification"] >= AMPLIFIED
        reads = row["read_in_writes_bytes"] >= (AMPLIFIED - 1) * row["bytes"]
        small = row["inner_mean_bytes"] < SMALL_BYTES
        if not (more or reads or (small and row["mean_bytes"] >= PIECES * row["inner_mean_bytes"])):
            continue
        amount = f"{row['amplification']:.1f} bytes by {row['by']} for each byte of the program"
        text = (
            f"{row['layer']} {row['op']}s, {_mean(row['mean_bytes'])} each: "
            f"{amount if more else 'made by ' + row['by']} in pieces of {_mean(row['inner_mean_bytes'])}"
        )
        if reads:
            text += f", which also read {bytes_text(row['read_in_writes_bytes'])}"
        sentences.append(f"{text} (mean sizes)")
    return sentences


def bytes_read_in_writes(rows: Sequence[dict[str, Any]]) -> int:
    """Sum the bytes that storage calls inside writes of libraries read: data sieving, metadata, chunks."""
    return sum(row["read_in_writes_bytes"] for row in rows if row["by"] in STORAGE)


def bytes_below_text(rows: Sequence[dict[str, Any]], op: str) -> str:
    """Return how many bytes libraries moved for those that a program asked for; ``""`` if about as many.

    Examples
    --------
    >>> from ensembles.structure.libraries import bytes_below_text
    >>> row = {"layer": "hdf5", "op": "read", "by": "posix", "bytes": 1 << 20, "inner_bytes": 4 << 20}
    >>> bytes_below_text([row], "read"), bytes_below_text([row], "write")
    ('4.00 MiB by storage calls inside libraries, for 1.00 MiB', '')
    """
    mine = [row for row in rows if row["op"] == op and row["by"] in STORAGE]
    asked = sum({row["layer"]: row["bytes"] for row in mine}.values())
    moved = sum(row["inner_bytes"] for row in mine)
    if asked / AMPLIFIED < moved < AMPLIFIED * asked or not moved or not asked:
        return ""
    return f"{bytes_text(moved)} by storage calls inside libraries, for {bytes_text(asked)}"


def _mean(value: float) -> str:
    return size_text(round(value)) if value == round(value) else bytes_text(value)


def collective_sentence(collective: dict[str, float] | None) -> str:
    """Return a sentence on how much of the time of collective calls is not storage; "" if that is unknown."""
    if collective is None:
        return ""
    whole, above = seconds_text(collective["time_s"]), seconds_text(collective["above_storage_s"])
    return (
        f"collective I/O: some task was in a collective call for {whole}, and in {above} of it "
        f"({share_text(collective['above_storage_share'])}) no task was in a storage call: tasks exchanged "
        "data, or waited for each other inside the calls"
    )
