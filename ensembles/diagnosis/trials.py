"""Which remedy of ``ensio try`` tests a finding."""

from __future__ import annotations

_OF_CAUSE = {
    "small-requests": "join=1MiB",
    "stdio-buffer": "join=1MiB",
    "sync-per-write": "sync=end",
    "close-cost": "keep-open",
    "single-large-call": "split=8",
    "redundant-reads": "once",
}
_OF_OP = {"open": "keep-open", "close": "keep-open", "sync": "sync=end", "meta": "once"}
"""Of findings about calls that could be fewer, by the operation of these calls."""


def remedy_of(cause: str, op: str | None) -> str:
    """Return the remedy of a finding; ``""``: no replay can test it."""
    if cause in ("metadata-storm", "fewer-calls"):
        return _OF_OP.get(op or "", "")
    return _OF_CAUSE.get(cause, "")
