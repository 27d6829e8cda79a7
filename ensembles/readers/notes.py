"""Sentences about what is partial or doubtful."""

from __future__ import annotations

from collections.abc import Sequence


def few(sentences: Sequence[str], what: str) -> list[str]:
    """The first sentences, and how many more there are."""
    if len(sentences) <= 3:
        return list(sentences)
    return [*sentences[:2], f"{len(sentences) - 2} more {what}"]
