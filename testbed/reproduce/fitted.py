"""Numbers and rules of the models that were chosen so that numbers of the papers come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed.reproduce.page import Kept


@dataclass(frozen=True)
class Fit:
    """What was fitted for the cases of some machines."""

    machines: str
    cases: tuple[str, ...]  # Cases that are simulated on them
    numbers: dict[str, tuple[str, ...]]  # Fitted keys by file. Their lines in the file are marked (fitted).
    # How a model works, where that was chosen with a number of a paper in view. A rule counts as a number.
    rules: tuple[str, ...] = ()
    # Machines of these cases of which nothing is fitted; their rows have the name
    others: tuple[str, ...] = ()

    def count(self) -> int:
        """Return how many numbers and rules are fitted."""
        return sum(len(keys) for keys in self.numbers.values()) + len(self.rules)

    def explained(self, rows: Sequence[Kept]) -> int:
        """Return how many rows come out with them.

        These are the rows of the cases that are within their tolerance and do not follow by construction.
        """
        mine = [
            row
            for row in rows
            if row.case in self.cases and row.is_met and not any(each in row.what for each in self.others)
        ]
        return sum(row.kind != "by construction" for row in mine)


FITS = (
    Fit(
        "Franklin and Jaguar",
        ("IOR", "MADbench", "GCRM"),
        {
            "franklin": (
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
        },
        ("what remains of the calls of a node is a burst again",),
    ),
    Fit(
        "Santos Dumont",
        ("SDumont",),
        {"sdumont": ("target_MB_per_s",)},
        ("a task handles messages one after the other",),
    ),
    Fit(
        "Theta",
        ("TAPIOCA",),
        {"theta": ("aggregator_MB_per_s", "shared_MB_per_s")},
        ("windows of a round are side by side in the file",),
        ("mira", "Mira"),
    ),
    Fit("ARCHER", ("benchio",), {}),
)


def listed(cases: Sequence[str]) -> Iterator[str]:
    """Name what is fitted, in a sentence for each machine."""
    for fit in FITS:
        if not set(fit.cases).intersection(cases):
            continue
        named = [f"{', '.join(keys)} of {name}" for name, keys in fit.numbers.items()]
        named += [f"that {rule}" for rule in fit.rules]
        yield f"{fit.machines}: {'; '.join(named) or 'nothing'}"


def told(rows: Sequence[Kept]) -> Iterator[str]:
    """Say for each machine how many numbers are fitted, and how many rows come out with them."""
    for fit in FITS:
        if any(row.case in fit.cases for row in rows):
            count, explained = fit.count(), fit.explained(rows)
            each = f", {explained / count:.1f} each" if count else ""
            yield (
                f"{fit.machines}: {count} fitted numbers and rules explain {explained} predicted and fitted "
                f"rows within tolerance{each}"
            )
