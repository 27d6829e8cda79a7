"""Sums of requests of non-blocking I/O, from their post to their observed completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

OPERATIONS = ("read", "write", "other")
"""Operations by which requests are summed. Others are synchronisations."""


class Flights(NamedTuple):
    """Sums over requests that were not posted inside another recorded call."""

    requests: int = 0  # Number of requests whose completion the program observed
    flight_ns: int = 0  # Time from the entry of the call that posted a request to its observed completion
    hidden_ns: int = 0  # The part of it in which the thread was in no call that posts or waits for a request
    # Time in the calls that completed the requests; that of a call which completed several counts for each.
    wait_ns: int = 0

    @property
    def hidden_share(self) -> float | None:
        """Share of the time in flight that is hidden behind other work; None: nothing was in flight."""
        return self.hidden_ns / self.flight_ns if self.flight_ns else None


def sum_of_flights(parts: Iterable[Flights]) -> Flights:
    """Add sums."""
    return Flights(*(sum(column) for column in zip(Flights(), *parts, strict=True)))


def flights_by_operation(processes: Iterable[Mapping[str, Flights]]) -> dict[str, Flights]:
    """Add the sums of several processes.

    Operations with at least one request, in the order of `OPERATIONS`.
    """
    tables = [table for table in processes if table]
    sums = {name: sum_of_flights(table.get(name, Flights()) for table in tables) for name in OPERATIONS}
    return {name: each for name, each in sums.items() if each.requests}
