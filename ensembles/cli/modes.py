"""``ensio modes``: find the modes of the call durations."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tabulate import tabulate

from ensembles.cli.options import add_filter_arguments, add_json, add_run, add_scale_arguments, parse_count
from ensembles.model.errors import EnsioError
from ensembles.model.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.statistics.modes.modes import Mode, Modes

_MIB = float(1 << 20)


def modes_text(modes: Modes, ensemble: Ensemble) -> str:
    """Format the modes: a title, a table, the test of unimodality, clusters and harmonics."""
    if modes.refused:
        return str(modes)
    per_mib = ensemble.per == "MiB"
    of = f" ({ensemble.name})" if ensemble.name else ""
    lines = [f"{count_text(len(modes), 'mode')} in {count_text(modes.n, 'call')}{of}", ""]
    rows = [_row(i, mode, per_mib) for i, mode in enumerate(modes.modes, 1)]
    headers = ["mode", "s per MiB" if per_mib else "duration", f"{100 * modes.level:g} % interval"]
    headers += ["rate"] * per_mib + ["share of calls", "width"]
    phases = modes.modes[0].effective_phases is not None
    headers += ["effective phases"] * phases
    lines.append(tabulate(rows, headers, disable_numparse=True, colalign=["right"] * len(headers)))
    lines.append("")
    if len(modes) > 1:
        lines.append(f"Unimodality rejected (p {_bound_text(modes.p_one_mode)}).")
    else:
        lines.append(f"No evidence of more than one mode (p {_bound_text(modes.p_one_mode)}).")
    if modes.resolution_s:
        lines.append(f"Timer resolution: {seconds_text(modes.resolution_s)}.")
    for what in (*modes.bumps, modes.harmonics, modes.fair_share):
        if what is not None:
            text = str(what)
            lines.append(text[0].upper() + text[1:] + ".")
    return "\n".join(lines)


def _row(number: int, mode: Mode, per_mib: bool) -> list[str]:
    row = [str(number), seconds_text(mode.t_s), f"{seconds_text(mode.low_s)} – {seconds_text(mode.high_s)}"]
    if per_mib:
        row.append(f"{bytes_text(_MIB / mode.t_s)}/s")
    low, high = 100 * mode.weight_low, 100 * mode.weight_high
    row.append(f"{100 * mode.weight:.1f} % ({low:.1f} % – {high:.1f} %)")
    row.append(f"± {100 * mode.width:.0f} %" if mode.width < 1 else f"× {2.718281828459045**mode.width:.1f}")
    if mode.effective_phases is not None:
        row.append(f"{mode.effective_phases:.0f}")
    return row


def _bound_text(p: float) -> str:
    return "< 1e-6" if p < 1e-6 else f"≤ {p:.2g}"


NAME = "modes"
HELP = "find the modes of the call durations, with confidence intervals and harmonics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    group = parser.add_argument_group("fair share")
    group.add_argument(
        "--limit",
        metavar="RATE",
        help="aggregate rate of the file system, such as 16GB/s; marks the fair share of a task (default: "
        "none)",
    )
    group.add_argument(
        "--tasks", metavar="N", type=parse_count("tasks", 1), help="number of tasks that share it"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the modes."""
    from ensembles.cli.options import ensemble_from_args

    limit = _limit_of(args.limit, args.tasks)
    ensemble = ensemble_from_args(args)
    modes = ensemble.modes(limit_bytes_per_s=limit, tasks=args.tasks)
    if args.json:
        import json

        json.dump({**modes.to_json(), "run": args.run, "per": ensemble.per}, sys.stdout, indent=2)
        print()
    else:
        print(modes_text(modes, ensemble))
    return 0


def _limit_of(text: str | None, tasks: int | None) -> float | None:
    from ensembles.run.selection import parse_size

    if (text is None) != (tasks is None):
        raise EnsioError("a fair share needs both --limit and --tasks: give the other one too")
    if text is None:
        return None
    size, per, second = text.partition("/")
    if per and second.strip() != "s":
        raise EnsioError(f'limit "{text}" is not a rate: write it like 16GB/s')
    limit = parse_size(size)
    if not limit:
        raise EnsioError(f'limit "{text}" is zero: give a positive rate')
    return float(limit)
