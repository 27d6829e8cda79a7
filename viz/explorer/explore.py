"""The explorer in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.model.errors import EnsioError
from ensembles.run.run import Run

if TYPE_CHECKING:
    from ensembles.viz.explorer.widget import ExplorerWidget


def explore(runs: Run | Sequence[Run], **filters: str | bool) -> ExplorerWidget:
    """Explore one or several runs in a notebook: linked pictures and tables, as in ``ensio serve``.

    Parameters
    ----------
    runs : Run or sequence of Run
        Two runs are shown on one time axis.
    **filters : str or bool
        What is shown first: ``op``, ``call``, ``layer``, ``file``, ``rank``, ``size``, ``time``,
        ``duration``, ``offset``, ``rate``, ``region``, ``site``, ``phase``,
        ``ordinal``, ``error``, written as on the command line, ``failed=True`` and ``per_byte=True``.

    Returns
    -------
    ExplorerWidget
        The value of a cell. ``marked`` are the calls that are marked with the mouse (all that are shown, if
        none is), ``view`` is what is shown.

    Raises
    ------
    EnsioError
        anywidget is not installed, a filter is malformed or has another name, or a run
        has no calls.

    Examples
    --------
    >>> from ensembles import viz
    >>> run = en.open("ensio-ior")
    >>> explorer = viz.explore(run, op="write")
    >>> len(explorer.marked) == len(run.select(op="write"))
    True
    """
    from ensembles.model.filters import FILTERS
    from ensembles.viz.explorer.shown import Shown
    from ensembles.viz.explorer.view import FLAGS, YES, View

    try:
        from ensembles.viz.explorer.widget import ExplorerWidget
    except ModuleNotFoundError as error:
        if error.name != "anywidget":
            raise
        raise EnsioError(
            "anywidget is not installed: pip install 'ensio[notebook]', or ensio serve"
        ) from None
    unknown = sorted(set(filters) - set(FILTERS))
    if unknown:
        raise EnsioError(f'"{unknown[0]}" is not a filter of the explorer: give one of {", ".join(FILTERS)}')
    shown = [Shown(run) for run in ([runs] if isinstance(runs, Run) else runs)]
    texts = {name: YES if name in FLAGS else str(text) for name, text in filters.items() if text}
    return ExplorerWidget(shown, View(filters=texts, beside=1 if len(shown) == 2 else None))
