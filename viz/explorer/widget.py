"""The explorer in a notebook: the same document as `ensio serve`, over the channel of the kernel."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal, get_args

import anywidget
import bokeh
import traitlets
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.document.events import DocumentChangedEvent, DocumentPatchedEvent
from bokeh.protocol import Protocol
from bokeh.resources import Resources

from ensembles.model.events import Events
from ensembles.model.sanitize_text import sanitize_text
from ensembles.viz.explorer.page import Explorer
from ensembles.viz.explorer.panel import keys_program
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View

_Script = Literal["bokeh", "bokeh-widgets", "bokeh-tables"]
_SCRIPTS = get_args(_Script)


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer of one or several runs, shown as the value of a cell.

    The widget has no state but the version of BokehJS, so that a saved notebook stays small. A page asks for
    the document as it is now, and for the parts of BokehJS that it lacks: no other request is made.
    """

    _esm = files("ensembles.viz.explorer").joinpath("widget.js").read_text(encoding="utf-8") + keys_program()
    _bokeh = traitlets.Unicode(bokeh.__version__).tag(sync=True)

    def __init__(self, runs: Sequence[Shown], view: View) -> None:
        super().__init__()
        self._explorer = Explorer(runs, view, in_page=False)
        self._document = Document()
        self._document.add_root(self._explorer.layout)
        self._document.add_root(self._explorer.texts)
        self._changes: list[DocumentPatchedEvent] = []
        self._is_receiving = False
        self._document.on_change(self._changed)
        self.on_msg(self._receive)

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

    def _changed(self, event: DocumentChangedEvent) -> None:
        if event.setter is self or not isinstance(event, DocumentPatchedEvent):
            return
        self._changes.append(event)
        if not self._is_receiving:
            self._send_changes()

    def _send_changes(self) -> None:
        changes, self._changes = self._changes, []
        if changes:
            message = Protocol().create("PATCH-DOC", changes)
            self.send(
                {
                    "kind": "patch",
                    "patch": message.content_json,
                    "buffers": [buffer.id for buffer in message.buffers],
                },
                [buffer.to_bytes() for buffer in message.buffers],
            )

    def _receive(self, widget: Any, content: Any, buffers: Any) -> None:
        asked = {"view": content["view"], "kind": content["kind"]}
        if content["kind"] == "script" and content["name"] in _SCRIPTS:
            self.send(asked, [_script(content["name"])])
        elif content["kind"] == "document":
            self.send({**asked, "document": serialize_json(self._document.to_json(deferred=False))})
        elif content["kind"] == "patch":
            self._is_receiving = True
            try:
                self._document.apply_json_patch(json.loads(content["patch"]), setter=self)
            finally:
                self._is_receiving = False
                self._send_changes()


def _script(name: _Script) -> bytes:
    """Return a part of BokehJS from the installed package."""
    resources = Resources(mode="inline", components=[name])
    return resources.js_raw[0].encode()
