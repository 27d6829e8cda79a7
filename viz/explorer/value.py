"""What the explorers in notebooks have in common: the view, and the marked calls."""

from __future__ import annotations

import shlex

from ensembles.model.events import Events
from ensembles.model.sanitize_text import sanitize_text
from ensembles.viz.explorer.page import Explorer
from ensembles.viz.explorer.view import View


class ExplorerValue:
    """An explorer as the value of a cell."""

    _explorer: Explorer

    @property
    def view(self) -> View:
        """What is shown now; another view can be assigned."""
        return self._explorer.view

    @view.setter
    def view(self, view: View) -> None:
        self._explorer.look(view)

    @property
    def marked(self) -> Events:
        """The marked calls; if none is marked, those that the filters select."""
        return self._explorer.shown.marked(self._explorer.view)

    def __repr__(self) -> str:
        paths = sanitize_text(shlex.join(shown.run.path for shown in self._explorer.runs))
        return f"Explorer: shown as the value of a cell in Jupyter; elsewhere: ensio serve {paths}"
