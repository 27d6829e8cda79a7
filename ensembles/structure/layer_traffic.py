"""What libraries make of the requests of the program: bytes and pieces by layer, and collective calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.calls import STORAGE
from ensembles.model.levels import A_TENTH, SMALL_BYTES
from ensembles.model.units import bytes_text, seconds_text, share_text, size_text

if TYPE_CHECKING:
    from ensembles.summaries.layer_traffic import LayerTraffic

AMPLIFIED = 1.2
"""Bytes that a layer below moves for each byte of the program from which on they are named."""


PIECES = 8

LEAST_SHARE = A_TENTH
"""Reads or writes with fewer bytes than this share of the most, in a library and below, are not named."""


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
    >>> from ensembles.structure.layer_traffic import bytes_below_text
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
