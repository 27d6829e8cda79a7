"""Answers of the explorer that take a pass over a run: modes and tail of marked calls, and the comparison."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bokeh.models import CustomJS
from bokeh.models.widgets import Button, Div

from ensembles.answers.compare import answer_comparisons
from ensembles.comparison.compare import compare_runs
from ensembles.model.errors import EnsioError
from ensembles.run.selection import Selection
from ensembles.viz.explorer.layout import LINES, button
from ensembles.viz.explorer.sentences import OF_ALL, modes_text_of

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
