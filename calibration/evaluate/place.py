"""Whether a finding points at the place of a planted cause: operation, tasks, target, file."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

OPS: dict[str, set[str]] = {
    "aggregation-mismatch": {"write"},
    "cache-cliff": {"write"},
    "close-cost": {"close"},
    "collective-coordination": {"write"},
    "hdf5-metadata": {"write"},
    "imbalance": {"write"},
    "interference": {"read", "write"},
    "metadata-storm": {"meta", "open"},
    "misaligned-requests": {"write"},
    "redundant-reads": {"read"},
    "seek-heavy": {"read"},
    "serialised-metadata": {"write"},
    "slow-target": {"read", "write"},
    "small-requests": {"read", "write"},
    "stdio-buffer": {"write"},
    "strided-readahead": {"read"},
    "sync-per-write": {"sync"},
}
"""Operations of the calls that a cause slows in drawn runs; a cause that is not here slows all."""

FILES = {"serialised-metadata": "header"}
"""Beginning of the name of the file, where it is not the data."""


def place_is_right(cause: str, where: dict[str, Any], finding: dict[str, Any]) -> bool:
    """Check whether a finding names the right operation, tasks, target and file; `where`: those of the truth.

    What the finding leaves open (None, no file) must have more than one answer.
    """
    found, ops = finding["where"], OPS.get(cause)
    if ops and found["op"] not in ops and (found["op"] is not None or len(ops) == 1):
        return False
    if "ranks" in where and found["ranks"] != _text(*where["ranks"]):
        return False
    if "target" in where and finding["evidence"].get("target") != where["target"]:
        return False
    begins = FILES.get(cause, "data")
    return all(PurePath(path).name.startswith((begins, "shared", "madbench")) for path in found["files"])


def _text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
