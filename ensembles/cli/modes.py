"""``ensio modes``: find the modes of the call durations."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_quantity,
    add_run,
    add_scale_arguments,
    parse_count,
)
from ensembles.model.errors import EnsioError
from ensembles.model.table import folded_table_text
from ensembles.model.units import bytes_text, count_text, seconds_text, share_text
from ensembles.model.wrapped import with_wrapped_lines, wrapped

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.statistics.modes.modes import Mode, Modes

_MIB = float(1 << 20)
_MOST_SITES = 5
_LEAST_SHARE = 0.05


_FEW = 0.1
"""Least share of a further mode from which on the calls are too few to count modes: 60 calls or fewer."""


def modes_text(modes: Modes, ensemble: Ensemble) -> str:
    """Format the modes: a title, a table, the test of unimodality, clusters, harmonics and sizes."""
    from ensembles.cli.histogram_text import histogram_text

    if modes.refused:
        return wrapped(str(modes))
    per_mib = ensemble.per == "MiB"
    of = f" ({ensemble.name})" if ensemble.name else ""
    found = count_text(len(modes), "mode") if modes.modes else "No mode"
    lines = [f"{found} in {count_text(modes.n, 'call')}{of}{modes.kind}", ""]
    if shown := histogram_text(ensemble, [mode.t_s for mode in modes.modes]):
        quantity = "time per MiB" if per_mib else "duration"
        lines += [shown, f"  Number of calls by {quantity}" + "; digits are modes." * bool(modes.modes), ""]
    if modes.modes:
        lines += [_table(modes, per_mib), ""]
    clusters = len(modes) + len(modes.bumps) + len(modes.spread)
    if clusters > 1 and modes.p_one_mode == 1.0:
        lines.append("Unimodality not rejected: every further cluster is of few phases.")
    elif clusters > 1:
        lines.append(f"Unimodality rejected (p {_bound_text(modes.p_one_mode)}).")
    else:
        least = share_text(modes.least_share, None)
        said = (
            "No evidence of a further mode." if modes.least_share < _FEW else "Too few calls to count modes."
        )
        lines.append(f"{said} One of less than {least} would not be seen.")
    if modes.resolution_s:
        per = " per MiB" if per_mib else ""
        lines.append(f"Timer resolution: {seconds_text(modes.resolution_s)}{per}.")
    one_each = (modes.far_calls, modes.harmonics, modes.time_slices, modes.fair_share)
    for what in (modes.turns, *modes.bumps, *modes.spread, *modes.shoulders, *one_each):
        if what is not None:
            text = str(what)
            lines.append(text[0].upper() + text[1:] + ".")
    if modes.sizes:
        lines += ["", _sizes_table(modes)]
    return with_wrapped_lines("\n".join(lines))


def _table(modes: Modes, per_mib: bool) -> str:
    rows = [_row(i, mode, per_mib, modes.phases) for i, mode in enumerate(modes.modes, 1)]
    headers = ["mode", "s per MiB" if per_mib else "duration", f"{100 * modes.level:g} % interval"]
    has_times = modes.modes[0].time_share is not None
    has_phases = modes.modes[0].effective_phases is not None
    about_calls = ["share of calls", *["of time"] * has_times, "width", *["phases"] * has_phases]
    headers += ["rate"] * per_mib
    together = len(headers) - 1, len(about_calls)
    return folded_table_text([*headers, *about_calls], rows, left=0, together=together)


def _sizes_table(modes: Modes) -> str:
    """Format how many calls of each size are in each mode."""
    rows = [
        [size.name, f"{size.calls:,}", *(share_text(share, 1) for share in size.shares)]
        for size in modes.sizes
    ]
    headers = ["size", "calls", *(f"mode {number}" for number in range(1, len(modes) + 1))]
    return folded_table_text(headers, rows, left=0)


def _row(number: int, mode: Mode, per_mib: bool, phases: int | None) -> list[str]:
    row = [str(number), seconds_text(mode.t_s), f"{seconds_text(mode.low_s)} – {seconds_text(mode.high_s)}"]
    if per_mib:
        row.append(f"{bytes_text(_MIB / mode.t_s)}/s")
    low, high = 100 * mode.weight_low, 100 * mode.weight_high
    share = share_text(mode.weight, 1)
    row.append(share if low == high else f"{share} ({low:.1f} – {high:.1f})")
    if mode.time_share is not None:
        row.append(share_text(mode.time_share, 1))
    row.append(f"± {share_text(mode.width)}" if mode.width < 1 else f"× {2.718281828459045**mode.width:.1f}")
    if mode.effective_phases is not None:
        row.append(_phases(mode.effective_phases, phases))
    return row


def _phases(effective: float, phases: int | None) -> str:
    """Format the effective number of phases: with a decimal where rounding hides that they are most."""
    if phases is None:
        return f"{effective:.0f}"
    digits = int(round(effective) <= phases / 2 < effective)
    return f"{effective:.{digits}f}/{phases}"


def _bound_text(p: float) -> str:
    return "< 1e-6" if p < 1e-6 else f"≤ {p:.2g}"


HELP = "find the modes of the call durations, with confidence intervals and harmonics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_quantity(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    group = parser.add_argument_group("fair share")
    group.add_argument(
        "--maximum",
        metavar="RATE",
        help="aggregate rate that the file system can reach, such as 16GB/s; marks the fair share of a task "
        "(default: none)",
    )
    group.add_argument("--limit", dest="maximum", help=argparse.SUPPRESS)  # its name until 0.1
    group.add_argument(
        "--tasks", metavar="N", type=parse_count("tasks", 1), help="number of tasks that share it"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the modes."""
    from ensembles.cli.options import run_and_ensemble_from_args

    limit = _limit_of(args.maximum, args.tasks)
    run, selection, ensemble = run_and_ensemble_from_args(args)
    modes = ensemble.modes(limit_bytes_per_s=limit, tasks=args.tasks)
    sites = _sites_of_modes(run, selection, modes)
    if args.json:
        import json

        result = {**modes.to_json(), "run": args.run, "per": ensemble.per}
        result |= {"quantity": args.quantity} if args.quantity != "duration" else {}
        for mode, shares in zip(result["modes"], sites, strict=False):
            mode["sites"] = [{"label": label, "share": share} for label, share in shares]
        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        print(modes_text(modes, ensemble))
        if sites:
            print()
            for number, (mode, shares) in enumerate(zip(modes.modes, sites, strict=True), 1):
                print(wrapped(f"Mode {number} ({seconds_text(mode.t_s)}): {_shares_text(shares)}."))
    return 0


def _sites_of_modes(run: Run, selection: Selection, modes: Modes) -> list[list[tuple[str, float]]]:
    """Return for each mode the call sites of its calls with their shares, the largest first.

    A call belongs to the mode whose duration is nearest on a logarithmic scale. Without call sites, or if not
    every call is an event, the list is empty.
    """
    from functools import partial

    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.bysite import SitesByDuration

    if len(run.info.sites) < 2 or not modes.modes or selection.per_byte:
        return []
    places = [mode.t_s * 1e9 for mode in modes.modes]
    cuts = [(one * other) ** 0.5 for one, other in pairwise(places)]
    found = run.summarize(
        ignoring_run(partial(SitesByDuration, cuts, selection.quantity)), selection=selection
    )
    shares = []
    for counts in found.counts:
        by_label: Counter[str] = Counter()
        for site, count in counts.items():
            by_label[run.info.label_of_site(site)] += count
        total = max(by_label.total(), 1)
        shares.append([(label, count / total) for label, count in by_label.most_common(_MOST_SITES)])
    return shares if any(shares) else []


def _shares_text(shares: list[tuple[str, float]]) -> str:
    named = [f"{share_text(share)} from {label}" for label, share in shares if share >= _LEAST_SHARE]
    return "; ".join(named) or "from many places"


def _limit_of(text: str | None, tasks: int | None) -> float | None:
    from ensembles.run.selection import parse_size

    if (text is None) != (tasks is None):
        raise EnsioError("a fair share needs both --maximum and --tasks: give the other one too")
    if text is None:
        return None
    size, per, second = text.partition("/")
    if per and second.strip() != "s":
        raise EnsioError(f'maximum "{text}" is not a rate: write it like 16GB/s')
    limit = parse_size(size)
    if not limit:
        raise EnsioError(f'maximum "{text}" is zero: give a positive rate')
    return float(limit)
