"""``ensio modes``: the durations about which calls gather."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tabulate import tabulate

from ensembles.cli.common_args import add_json, add_run, parse_count
from ensembles.cli.execution_args import add_scale_arguments
from ensembles.cli.filter_args import add_filter_arguments
from ensembles.model.errors import EnsioError
from ensembles.model.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.statistics.modes.modes import Mode, Modes

_MIB = float(1 << 20)


def modes_text(modes: Modes, ensemble: Ensemble) -> str:
    """A title, a table of the modes, and what there is to say beside."""
    if modes.refused:
        return str(modes)
    per_mib = ensemble.per == "MiB"
    of = f" ({ensemble.name})" if ensemble.name else ""
    lines = [f"{count_text(len(modes), 'mode')} in {count_text(modes.n, 'call')}{of}", ""]
    rows = [_row(i, mode, per_mib) for i, mode in enumerate(modes.modes, 1)]
    headers = ["mode", "s per MiB" if per_mib else "duration", f"{modes.level:.0%} interval"]
    headers += ["rate"] * per_mib + ["share of calls", "width"]
    phases = modes.modes[0].effective_phases is not None
    headers += ["phases"] * phases
    lines.append(tabulate(rows, headers, disable_numparse=True, colalign=["right"] * len(headers)))
    lines.append("")
    if len(modes) > 1:
        lines.append(f"That there is more than one is no chance (p {_chance_text(modes.p_one_mode)}).")
    else:
        lines.append(f"Nothing says that there is more than one (p {_chance_text(modes.p_one_mode)}).")
    if modes.resolution_s:
        lines.append(f"The clock's step is {seconds_text(modes.resolution_s)}: durations are known to that.")
    for what in (*modes.bumps, modes.harmonics, modes.fair_share):
        if what is not None:
            text = str(what)
            lines.append(text[0].upper() + text[1:] + ".")
    return "\n".join(lines)


def _row(number: int, mode: Mode, per_mib: bool) -> list[str]:
    row = [str(number), seconds_text(mode.t_s), f"{seconds_text(mode.low_s)} – {seconds_text(mode.high_s)}"]
    if per_mib:
        row.append(f"{bytes_text(_MIB / mode.t_s)}/s")
    row.append(f"{mode.weight:.1%} ({mode.weight_low:.1%} – {mode.weight_high:.1%})")
    row.append(f"± {mode.width:.0%}" if mode.width < 1 else f"× {2.718281828459045**mode.width:.1f}")
    if mode.effective_phases is not None:
        row.append(f"{mode.effective_phases:.0f}")
    return row


def _chance_text(chance: float) -> str:
    return "< 1e-6" if chance < 1e-6 else f"≤ {chance:.2g}"


NAME = "modes"
HELP = "the modes of the durations of calls, each with an interval, and their harmonics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    group = parser.add_argument_group("fair share")
    group.add_argument("--limit", metavar="RATE", help="what all tasks can move together, for example 16GB/s")
    group.add_argument("--tasks", metavar="N", type=parse_count("tasks", 1), help="how many share it")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the modes."""
    from ensembles.cli.ensemble_args import ensemble_from_args

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
        raise EnsioError("a fair share takes both: give --limit and --tasks")
    if text is None:
        return None
    size, per, second = text.partition("/")
    if per and second.strip() != "s":
        raise EnsioError(f'limit "{text}" is no rate: write it like 16GB/s')
    limit = parse_size(size)
    if not limit:
        raise EnsioError(f'limit "{text}" is zero: nothing can be shared')
    return float(limit)
