"""Kinds of arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_MAX_DIGITS = 18
"""Of a count: so many fit into 64 bits."""


def path_of(what: str) -> Callable[[str], str]:
    """The check of a path: an empty one would mean the current folder, which nobody asked for."""

    def checked(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"the {what} has no name")
        return text

    return checked


def count_of(what: str, least: int) -> Callable[[str], int]:
    """The check and conversion of a whole number."""

    def converted(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise argparse.ArgumentTypeError(f'"{text}" is no number of {what}')
        if len(text) > _MAX_DIGITS:
            raise argparse.ArgumentTypeError(f"a number of {len(text)} digits is too large")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return int(text)

    return converted


def level_of(text: str) -> float:
    """The check and conversion of the probability of an interval."""
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f'"{text[:20]}" is no probability between 0 and 1, such as 0.9')
    return level
