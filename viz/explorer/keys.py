"""Keys of the explorer's pictures: those of the one that has the focus zoom and move it."""

from __future__ import annotations

from importlib.resources import files

from bokeh.plotting import figure

_ALONG = "+ − zoom, ← → move"
_WHOLE = "0 or Home: all"
_KEYS = ("+", "-", "ArrowLeft", "ArrowRight", "0", "Home")
_KEYS_ACROSS = ("ArrowUp", "ArrowDown", "Shift+ArrowUp", "Shift+ArrowDown")


def take_keys(fig: figure, along: str, across: str = "") -> None:
    """Let a figure have the focus, and say which keys it then takes (``keys.js``).

    `across`: what its vertical axis has; empty: no key changes it.
    """
    parts = [f"{_ALONG} ({along})"]
    if across:
        parts.append(f"↑ ↓ move, Shift with ↑ ↓ zooms ({across})")
    keys = (*_KEYS, *(_KEYS_ACROSS if across else ()))
    fig.html_attributes = {
        **fig.html_attributes,
        "tabindex": "0",
        "aria-keyshortcuts": " ".join("Plus" if key == "+" else key for key in keys),
        "aria-description": f"Keys: {'; '.join([*parts, _WHOLE])}.",
    }


def keys_program() -> str:
    """Return the programs that act on keys and on widths: they define ``explorerKeys`` and ``fitRows``."""
    folder = files("ensembles.viz.explorer")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("keys.js", "rows.js"))
