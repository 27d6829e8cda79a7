"""Answers of the explorer that take a pass over a run: modes and tail of marked calls, and the comparison.

Pictures of the explorer that are drawn when a reader asks for them: layers, and storage targets.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.layouts import column, row
from bokeh.models import CustomJS
from bokeh.models.widgets import Button, Div

from ensembles.answers.compare import answer_comparisons
from ensembles.comparison.compare import compare_runs
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.units import count_text
from ensembles.run.selection import Selection
from ensembles.viz.common.single_calls import LAYERS
from ensembles.viz.explorer.layout import LINES, button
from ensembles.viz.explorer.sentences import OF_ALL, modes_text_of
from ensembles.viz.pictures.targets import targets
from ensembles.viz.pictures.trace_diagram import trace_diagram

if TYPE_CHECKING:
    from ensembles.viz.explorer.panel import Shows


# A long answer is below the window, and of two runs all of it: the page goes to where it begins.
_GO_TO_JS = """
    if (div.text) setTimeout(() => {
        const view = cb_context.index.find_one(div);
        const box = view?.el.getBoundingClientRect();
        if (box && (box.bottom > window.innerHeight || box.top < 0)) {
            view.el.scrollIntoView({block: box.height < window.innerHeight ? 'nearest' : 'start'});
        }
    });
"""


class Answers:
    """The answer to the latest question, below the pictures."""

    def __init__(self, explorer: Shows) -> None:
        self._explorer = explorer
        self.shown = Div(name="of_modes", sizing_mode="stretch_width")
        self.shown.js_on_change("text", CustomJS(args={"div": self.shown}, code=_GO_TO_JS))

    def buttons(self) -> list[Button]:
        """Return the buttons that ask."""
        asks = [button("Modes and tail of the marked calls", "modes", self._show_modes, 230)]
        if len(self._explorer.runs) > 1:
            asks.append(button("Compare both runs", "compare", self._show_comparison, 140))
        return asks

    def say(self, sentence: str) -> None:
        """Say something instead of an answer; empty: nothing."""
        self.shown.text = f"<p>{html.escape(sentence)}</p>" if sentence else ""

    def _show_modes(self) -> None:
        explorer = self._explorer
        several = len(explorer._panels) > 1

        def text() -> str:
            answers = [] if explorer.view.is_marked else [OF_ALL]
            for panel in explorer._panels:
                of = f"{panel.shown.run.path}:\n" if several else ""
                answers.append(f"{of}{modes_text_of(panel.shown, panel.of_marked, explorer.view)}")
            return "\n\n".join(answers)

        self._answer_with(text)

    def _show_comparison(self) -> None:
        explorer = self._explorer
        if len(explorer._panels) < 2:
            self.say("Choose a run beside this one to compare both.")
            return

        def text() -> str:
            runs = [[panel.shown.run] for panel in explorer._panels]
            filters: dict[str, Any] = dict(explorer.view.filters)
            return str(answer_comparisons(compare_runs(runs, selection=Selection.parse(**filters))))

        self._answer_with(text)

    def _answer_with(self, text: Callable[[], str]) -> None:
        try:
            self.shown.text = f'<pre style="{LINES}">{html.escape(text())}</pre>'
        except (EnsioError, ValueError) as error:
            self.say(str(error))


class MorePictures:
    """Pictures of the marked calls, in the window that is shown, on the axis of time of the others.

    They stay as they are until they are asked for again, or other calls are shown.

    `layout`: buttons, and below them the picture that was asked for.
    """

    def __init__(self, explorer: Shows) -> None:
        self._explorer = explorer
        self._about = Div(name="about_more", sizing_mode="stretch_width")
        self._none = Div(visible=False)  # a column without anything in it is refused
        self._picture = column(self._none, sizing_mode="stretch_width", name="more_pictures")
        buttons = [
            self._button("Layers above each other", "by_layer", self._layers, 180),
            self._button("Storage targets", "targets", self._targets, 130),
        ]
        self.layout = column(
            row(*buttons, styles={"flex-wrap": "wrap"}),
            self._about,
            self._picture,
            sizing_mode="stretch_width",
        )

    def clear(self) -> None:
        """Remove the picture."""
        self._about.text, self._picture.children = "", [self._none]

    def _button(self, label: str, name: str, draw: Callable[[Events, Any], Any], width: int) -> Button:
        def clicked() -> None:
            explorer = self._explorer
            try:
                window = explorer._panels[0].diagram.window_in(explorer.view)
                events, is_part = explorer.shown.marked_in_view(explorer.view, window)
                picture = draw(events, _times(explorer)) if len(events) else None
            except (EnsioError, ValueError) as error:
                self.clear()
                self._about.text = f"<p>{html.escape(str(error))}</p>"
                return
            which = "marked" if explorer.view.is_marked else "shown"
            of = f"Of {count_text(len(events), f'{which} call')}"
            self._about.text = f"<p>{of}{' in view' if is_part else ''}:</p>"
            self._picture.children = [self._none if picture is None else picture]

        button = Button(label=label, name=f"draw_{name}", width=width)
        button.on_click(clicked)
        return button

    def _layers(self, events: Events, times: Any) -> Any:
        present = {events.calls[number].layer for number in np.unique(events.call).tolist()}
        layers = [name for name in LAYERS if name in present]
        if len(layers) < 2:
            raise ValueError(f"These calls are of one layer: {', '.join(sorted(present))}.")
        view = self._explorer.view
        ranks = view.zoom_ranks and (round(view.zoom_ranks[0] + 0.5), round(view.zoom_ranks[1] - 0.5))
        return trace_diagram(events, view.zoom_s, ranks=ranks, layers=layers, x_range=times)

    def _targets(self, events: Events, times: Any) -> Any:
        return targets(events, layouts=self._explorer.shown.run, x_range=times)


def _times(explorer: Shows) -> Any:
    """Return the axis of time of the first trace diagram, which a new run or filter replaces."""
    diagram: Any = explorer.layout.select_one({"name": "explorer_trace"})
    return diagram.x_range
