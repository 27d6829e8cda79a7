"""``ensio modes`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from ensembles.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.ensemble import Ensemble
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
