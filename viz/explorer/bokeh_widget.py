"""The explorer in a notebook where anywidget is missing: the document of `ensio serve` in a `BokehModel`.

BokehJS must be in the page, and jupyter_bokeh calls some callbacks twice: all of the explorer's may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.io import output_notebook
from bokeh.resources import INLINE
from jupyter_bokeh import BokehModel

from ensembles.viz.explorer.page import Explorer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.value import ExplorerValue
from ensembles.viz.explorer.view import View


class BokehExplorerWidget(ExplorerValue, BokehModel):  # type: ignore[misc] # jupyter_bokeh has no types
    """The explorer of one or several runs, shown as the value of a cell."""

    def __init__(self, runs: Sequence[Shown], view: View, **others: Any) -> None:
        self._explorer = Explorer(runs, view, in_page=False)
        output_notebook(INLINE, hide_banner=True)
        # The texts to copy have no place on the page, but their buttons name them.
        super().__init__(self._explorer.layout, **others)
