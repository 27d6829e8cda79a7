"""What the explorers in notebooks have in common: the view, and the marked calls."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ensembles.model.events import Events
from ensembles.model.sanitize_text import sanitize_text
from ensembles.viz.explorer.page import Explorer
from ensembles.viz.explorer.view import View


class ExplorerValue:
    """An explorer as the value of a cell."""

    _explorer: Explorer

    @property
    def view(self) -> View:
        """What is shown now.

        Another view can be assigned, or the parameters of a link, such as ``{"op": "write"}`` or
        ``{"marked-durations": "0.002..0.0067"}`` (`View.from_query`).
        """
        return self._explorer.view

    @view.setter
    def view(self, view: View | Mapping[str, str]) -> None:
        if isinstance(view, Mapping):
            query = {str(name): str(text) for name, text in view.items()}
            view = View.from_query(query, len(self._explorer.runs))
        if not isinstance(view, View):
            raise TypeError(f"a View or the parameters of a link are needed, not {type(view).__name__}")
        self._explorer.look(view)

    @property
    def marked(self) -> Events:
        """The marked calls; if none is marked, those that the filters select."""
        return self._explorer.shown.marked(self._explorer.view)

    def __repr__(self) -> str:
        paths = sanitize_text(shlex.join(shown.run.path for shown in self._explorer.runs))
        return f"Explorer: shown as the value of a cell in Jupyter; elsewhere: ensio serve {paths}"
