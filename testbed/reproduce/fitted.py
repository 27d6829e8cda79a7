"""Numbers that were chosen so that numbers of the papers come out."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.reproduce.figure import Row

FITTED: dict[str, dict[str, tuple[str, ...]]] = {
    "Franklin and Jaguar": {
        "franklin": (
            "link_MB_per_s",
            "cache_MiB",
            "share_noise",
            "heavy_share",
            "heavy_factor",
            "heavy_noise",
            "partial_stripe_ms",
            "lock_conflict_ms",
            "writers_doubling",
            "stride_window_MiB",
            "page_ms",
        ),
        "jaguar": ("link_MB_per_s",),
        "gcrm (pattern)": ("metadata_writes",),
    },
    "Santos Dumont": {"sdumont": ("target_MB_per_s",)},
    "Theta": {"theta": ("aggregator_MB_per_s", "shared_MB_per_s")},
}
"""By machine: files of models and patterns, with their fitted keys."""


def count() -> int:
    """Return how many numbers are fitted."""
    return sum(len(keys) for files in FITTED.values() for keys in files.values())


def told(rows: Sequence[Row]) -> str:
    """Say how many numbers are fitted, and how many rows come out with them."""
    met = sum(row.met for row in rows)
    return f"{count()} numbers of the models are fitted; {met} rows of {len(rows)} come out with them"
