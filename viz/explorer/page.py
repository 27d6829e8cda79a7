"""The document of the explorer: linked pictures and tables of the calls of a run.

The same document is served by `ensembles.viz.explorer.server`, and shown in notebooks by
`ensembles.viz.explorer.widget`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.widgets import Button, Div, Select, Widget

from ensembles.answers.diagnose import DiagnosisAnswer
from ensembles.diagnosis.finding import Finding
from ensembles.model.errors import EnsioError
from ensembles.viz.common.figures import add_legend_buttons, time_range
from ensembles.viz.common.theme import widget_filter
from ensembles.viz.explorer.answers import Answers, MorePictures
from ensembles.viz.explorer.layout import (
    LINES,
    LINK_JS,
    Fields,
    arranged,
    button,
    choice_of_causes,
    copy_buttons,
    examined_of,
    filter_fields,
    heading,
    name_of,
    name_runs,
    name_tables,
    offer_causes,
    wide,
)
from ensembles.viz.explorer.panel import Panel
from ensembles.viz.explorer.sentences import NO_MARK, OF_FILTERS, chosen_text
from ensembles.viz.explorer.shown import (
    Shown,
    Structure,
    about_causes,
    beyond_finding,
    calls_by_ordinal,
    mark_finding,
)
from ensembles.viz.explorer.tables import (
    FINDINGS,
    ORDINALS,
    PHASES,
    RANKS,
    SLOWEST,
    Table,
    finding_columns,
    phase_columns,
)
from ensembles.viz.explorer.view import Chosen, View, end_of
from ensembles.viz.explorer.working import Working

_FILTER = widget_filter().css
_FIRST_PARTS = 4
"""A page shows sign, filters, messages and pictures first, and of these the trace diagram."""
_NONE = "-"
_FOLLOWS = '<p role="status">The other pictures and the tables follow.</p>'
_WRAP, _AS_PAGE = {"flex-wrap": "wrap"}, {"max-width": "100%"}

# The keys of the view that a zoom changes: tables and texts stay.
_ZOOM = ("zoom_s", "zoom_ranks")


class Explorer:
    """The explorer of several runs, in one document.

    `in_stages`: the layout has only the first pictures until `complete` is called, so that a browser paints
    them earlier.
    `view`: what is shown now.
    `layout`: what is added to a document.
    `texts`: the texts to copy; added to the document too.
    `painted`: the page changes it when it has painted the first pictures, and can draw tables.
    """

    def __init__(
        self, runs: Sequence[Shown], view: View, *, in_page: bool = True, in_stages: bool = False
    ) -> None:
        self.runs = runs
        self.view = view
        self._version = -1
        self._in_page, self._awaits_structure, self._working = in_page, False, Working()
        self._link = ColumnDataSource({"query": [view.query()]}, name="link")
        if in_page:
            self._link.js_on_change("data", CustomJS(args={"source": self._link}, code=LINK_JS))
        self._message = Div(name="message", sizing_mode="stretch_width")
        self._found = Div(name="found", sizing_mode="stretch_width")
        self._call = Div(name="call", sizing_mode="stretch_width")
        self._answers = Answers(self)
        self._doubts = Div(name="reasons", sizing_mode="stretch_width")
        self.painted = ColumnDataSource({"views": []}, name="painted")
        self.painted.on_change("data", lambda attribute, old, new: self.complete())
        self.texts = ColumnDataSource({"command": [""], "python": [""]}, name="texts")
        self._inputs = filter_fields(view)
        for name, field in self._inputs.items():
            field.on_change("value", self._filter(name))
        several = any(shown.run.info.most_threads > 1 for shown in runs)
        columns = [each for each in SLOWEST if several or each[0] != "thread"]
        self._slowest = Table("slowest", columns, self._zoom_to_call)
        self._ranks = Table("by_rank", RANKS, self._mark_rank)
        self._findings = Table("findings", FINDINGS, self._mark_finding, height=190, several_lines=True)
        self._phases = Table("phases", PHASES, self._mark_phase, height=200)
        self._ordinals = Table("ordinals", ORDINALS, self._mark_ordinal, height=200)
        self._tables = {
            "rank ": self._ranks,
            "finding ": self._findings,
            "phase ": self._phases,
            "call index ": self._ordinals,
        }
        self._causes_of: Shown | None = None
        self._diagnosis: DiagnosisAnswer | None = None
        self._structured, self._filters_of_causes = Structure(), view.filters
        self._awaits_structure = False
        self._causes_heading, self._slowest_heading, self._ranks_heading = (heading("") for _ in range(3))
        self._whose = choice_of_causes(self._choose_causes)
        self._marks_of: tuple[str, Finding] | None = None
        self._examine = button("Find causes, phases and call indices", "examine", self._fill_causes, 250)
        self._structure = row(
            wide(560, self._phases.widget),
            column(self._ordinals.widget, width=370, styles=_AS_PAGE),
            sizing_mode="stretch_width",
            styles=_WRAP,
            visible=False,
        )
        self._pictures, self._more = column(sizing_mode="stretch_width", name="pictures"), MorePictures(self)
        self._fields = Fields(self)
        self.layout = column(
            self._working.sign,
            row(*self._choices(), *self._inputs.values(), sizing_mode="stretch_width", styles=_WRAP),
            self._message,
            self._pictures,
            self._fields.layout,
            row(*self._buttons(), styles=_WRAP),
            self._more.layout,
            self._found,
            self._answers.shown,
            self._call,
            row(
                self._causes_heading,
                self._whose,
                self._examine,
                styles=_WRAP,
            ),
            self._doubts,
            self._findings.widget,
            self._structure,
            row(
                wide(640, self._slowest_heading, self._slowest.widget),
                column(
                    self._ranks_heading,
                    self._ranks.widget,
                    width=350,
                    styles=_AS_PAGE,
                ),
                sizing_mode="stretch_width",
                styles=_WRAP,
            ),
            sizing_mode="stretch_width",
            name="explorer",
        )
        for widget in self.layout.select({"type": Widget}):
            if isinstance(widget, Widget) and not isinstance(widget, Div):
                widget.stylesheets = [*widget.stylesheets, _FILTER]
        self._working.watch_widgets(self.layout, [*self._tables.values(), self._slowest])
        self._later = self.layout.children[_FIRST_PARTS:] if in_stages else []
        if in_stages:
            self.layout.children = [*self.layout.children[:_FIRST_PARTS], Div(text=_FOLLOWS)]
        self._draw()

    @property
    def is_in_stages(self) -> bool:
        """Whether `complete` has something to add."""
        return bool(self._later)

    def is_current(self) -> bool:
        """Whether it shows what is known of the runs."""
        return self._version == sum(shown.version for shown in self.runs)

    def complete(self) -> None:
        """Add what a layout in stages lacks."""
        if self._later:
            later, self._later = self._later, []
            self._arrange()
            self.layout.children = [*self.layout.children[:_FIRST_PARTS], *later]

    def first_shares(self) -> tuple[Any, list[str]]:
        """Return the image of the first trace diagram, with the names of its classes; None: it has none."""
        return self._panels[0].diagram.shares, self._panels[0].diagram.classes

    def _choices(self) -> list[Select]:
        """Create the choices of the run, and of the second run."""
        numbered: list[str | tuple[Any, str]] = [
            (str(number), end_of(shown.run.path)) for number, shown in enumerate(self.runs)
        ]
        self._run = Select(title="run", options=numbered, value=str(self.view.run), name="run", width=220)
        self._run.on_change("value", self._choose_run)
        if len(self.runs) == 1:
            return [self._run]
        beside = _NONE if self.view.beside is None else str(self.view.beside)
        nothing: list[str | tuple[Any, str]] = [(_NONE, "none")]
        self._beside = Select(
            title="beside it", options=nothing + numbered, value=beside, name="beside", width=220
        )
        self._beside.on_change("value", self._choose_beside)
        return [self._run, self._beside]

    def _buttons(self) -> list[Button]:
        return [
            button("Clear the marked calls", "clear", lambda: self._look(View.marking), 160),
            button("Zoom to the marked calls", "zoom", self._zoom_to_marked, 190),
            button("Whole run", "whole", lambda: self._look(_whole), 100),
            *self._answers.buttons(),
            *copy_buttons(self.texts),
        ]

    @property
    def shown(self) -> Shown:
        """The run that is shown."""
        return self.runs[self.view.run]

    @property
    def _examined(self) -> Shown:
        """The run whose findings, phases and call indices are shown."""
        return self.runs[examined_of(self.runs, self.view)]

    @property
    def _of_run(self) -> str:
        """The name of that run, for what is marked; empty: there is one run."""
        return f" of {name_of(self._examined)}" if len(self._panels) > 1 else ""

    def look(self, view: View, *, from_page: bool = False) -> None:
        """Show another view; if it is not valid, say why and keep the one before."""
        before, self.view = self.view, view
        if before == view:
            return
        with self.shown.answering():
            self._show(before, view, from_page)

    def _show(self, before: View, view: View, from_page: bool) -> None:
        try:
            if (before.run, before.beside, before.filters) != (view.run, view.beside, view.filters):
                self._draw()
            elif before.causes != view.causes:
                self._show_causes()
                self._mark()
            elif before.within == view.within:
                self._show_window(from_page)
            else:
                self._mark()
                if (before.zoom_s, before.zoom_ranks) != (view.zoom_s, view.zoom_ranks):
                    self._panels[0].diagram.zoom(view)
        except EnsioError as error:
            self.view = before
            self._say(str(error))
        for name, field in self._inputs.items():
            if field.value != self.view.filters.get(name, "") and before.filters != self.view.filters:
                field.value = self.view.filters.get(name, "")

    def _look(self, change: Callable[[View], View], *, from_page: bool = False) -> None:
        self.look(change(self.view), from_page=from_page)

    def renew(self) -> None:
        """Show the calls that came since, of runs that go on."""
        version = sum(shown.version for shown in self.runs)
        if version == self._version:
            return
        self._version = version
        is_due = self._examine.visible or self._awaits_structure
        if is_due and (self._examined.knows_causes or self._examined.examines):
            self._fill_causes()
        self._examine.visible = not self._examined.knows_causes
        try:
            with self.shown.answering(quiet_s=0.0):
                self._renew()
        except EnsioError as error:
            self._say(str(error))

    def _renew(self) -> None:
        if all(panel.shows_all_but_window(self.view) for panel in self._panels):
            for panel in self._panels:
                panel.show_window(self.view)
            self._say("", self._notes())
            return
        renewed = [panel.renew(self.view) for panel in self._panels]
        if not all(renewed):
            self._draw()
            return
        self._mark()
        # The picture of offsets may have come: others stay, since they may be in use.
        self._arrange()

    def _notes(self) -> list[str]:
        several = len(self._panels) > 1
        return [note for panel in self._panels for note in panel.notes(self.view, several)]

    def _say(self, sentence: str, notes: Sequence[str] = ()) -> None:
        """Say what went wrong, and what is missing in what is shown."""
        style = "color:var(--ensio-alert, #b00020)"
        alert = f'<p role="alert" style="{style}">{html.escape(sentence)}</p>' if sentence else ""
        self._message.text = alert + "".join(f"<p>{html.escape(note)}</p>" for note in notes)

    def _choose_run(self, attribute: str, old: str, new: str) -> None:
        run, beside = int(new), self.view.beside
        if run == self.view.run:
            return
        self.look(View(run=run, filters=self.view.filters, beside=None if beside == run else beside))
        if beside == run:
            self._beside.value = _NONE

    def _choose_beside(self, attribute: str, old: str, new: str) -> None:
        self.look(replace(self.view, beside=None if new in (_NONE, str(self.view.run)) else int(new)))

    def _choose_causes(self, number: int) -> None:
        """Show the findings of another run; what one of the run before has marked is cleared."""
        if self.runs[number] is not self._examined:
            is_of_table = self.view.what.startswith(("finding ", "phase ", "call index "))
            self.look(replace(self.view.marking() if is_of_table else self.view, causes=number))

    def _filter(self, name: str) -> Any:
        def changed(attribute: str, old: str, new: str) -> None:
            filters = {key: text for key, text in {**self.view.filters, name: new.strip()}.items() if text}
            self.look(replace(self.view, filters=filters))

        return changed

    def _draw(self) -> None:
        """Draw everything, of the calls that the filters select."""
        view = self.view
        # What is read in the background while the pictures are made is drawn the next time.
        self._version = sum(each.version for each in self.runs)
        shown = [self.shown] + ([] if view.beside is None else [self.runs[view.beside]])
        extents = [each.calls(view).extent_ns for each in shown]
        times = time_range(min(low for low, _ in extents), max(high for _, high in extents))
        panels: list[Panel] = []
        for each in shown:
            panels.append(Panel(each, view, times, self._look, panels[0] if panels else None))
            if not self._in_page:  # the page of a server has the buttons of legends
                for fig in panels[-1].rates.figures.values():
                    add_legend_buttons(fig)
        self._panels = panels
        self._more.clear()
        self._mark()
        panels[0].diagram.zoom(view)
        self._arrange()
        name_tables(self._slowest_heading, self._ranks_heading, panels)
        self._show_causes()

    def _show_causes(self) -> None:
        """Show findings, phases and call indices of the run that the reader chooses."""
        examined = self._examined
        offer_causes(self._whose, self.runs, self.view)
        is_other = self._causes_of is not examined
        if is_other:
            self._causes_of, self._diagnosis = examined, None
            for table in (self._findings, self._phases, self._ordinals):
                table.fill({name: [] for name in table.source.data})
            self._doubts.text = ""
            self._findings.widget.visible = self._structure.visible = False
        if is_other and (examined.knows_causes or examined.examines):
            self._fill_causes()
        elif self._diagnosis is not None and self._filters_of_causes != self.view.filters:
            self._fill_structure()
        self._examine.visible = not examined.knows_causes
        self._filters_of_causes = self.view.filters

    def _show_window(self, from_page: bool) -> None:
        others = [panel.show_window(self.view) for panel in self._panels]
        if any(others):
            self._arrange()
        self._choose_none()
        self._tell()
        if not from_page:
            self._panels[0].diagram.zoom(self.view)
        self._linked()

    def _arrange(self) -> None:
        """Show the pictures, those that are still the same as they are: they may be in use."""
        name_runs(self._panels)
        pictures = [self._panels[0].diagram.figure] if self._later else arranged(self._panels)
        for panel in self._panels:
            self._working.watch_figures(panel.figures, [panel.diagram.window])
            if panel.file_choice is not None and self._working.watch_widget(panel.file_choice):
                panel.file_choice.stylesheets = [*panel.file_choice.stylesheets, _FILTER]
        if pictures != self._pictures.children:
            self._pictures.children = pictures

    def _choose_none(self) -> None:
        """Let no row of a table be chosen but the one that is shown."""
        for what, table in self._tables.items():
            if not self.view.what.startswith(what):
                table.choose_none()
        if self.view.chosen is None:
            self._slowest.choose_none()

    def _linked(self) -> None:
        """Write the view into the link and the fields of its ranges."""
        self._link.data = {"query": [self.view.query()]}
        self._fields.fill(self.view)

    def _mark(self) -> None:
        """Show the marked calls in every picture and table."""
        view = self.view
        paths = [panel.shown.run.path for panel in self._panels]
        texts = {
            "command": ["\n".join(map(view.command, paths))],
            "python": ["\n".join(map(view.python, paths, ("",) if len(paths) == 1 else ("_1", "_2")))],
        }
        others = [panel.mark(view) for panel in self._panels]
        if any(others):
            self._arrange()
        calls = self._panels[0].of_marked
        self._slowest.fill(calls.slowest())
        self._ranks.fill(calls.by_rank())
        self._tell()
        self._answers.say("")
        self.texts.data = texts
        self._call.text = "".join(
            f'<pre style="{LINES}">{html.escape(text[0])}</pre>' for text in texts.values()
        )
        self._choose_none()
        self._linked()
        self._say("", self._notes())

    def _tell(self) -> None:
        """Say what is marked, selected and in view."""
        view = self.view
        about = "" if view.chosen is None else f"<p>{html.escape(chosen_text(view.chosen))}</p>"
        about += f"<p>Marked: {html.escape(view.what)}.</p>" if view.what else ""
        if self._marks_of is not None and self._marks_of[0] == view.what:
            finding = self._marks_of[1]
            about += (
                f"<p>Where: {html.escape(str(finding.where))}. Advice: {html.escape(finding.advice)}"
                f"{'; try: ensio try RUN --with ' * bool(finding.trial)}{finding.trial}.</p>"
            )
            of_run = [each for each in self._panels if each.shown is self._examined] or self._panels
            calls = of_run[0].of_marked
            if not calls.reading:
                about += f"<p>{html.escape(beyond_finding(finding, calls.count))}</p>"
        self._found.text = about + "".join(
            f"<p>{html.escape(panel.sentence(view, len(self._panels) > 1))}</p>" for panel in self._panels
        )
        of = f" ({OF_FILTERS})" if view.filters else ""
        self._causes_heading.text = (
            f"<strong>Choose a finding, a phase or a call index to mark its calls</strong>{of}"
        )

    def _fill_causes(self) -> None:
        """Fill the tables of findings, phases and call indices."""
        try:
            examined = self._examined
            examined.find_causes()
            if not examined.knows_causes:
                self._doubts.text = "<p>The run is being examined for causes.</p>"
                return
            self._diagnosis = examined.causes.diagnosis
        except EnsioError as error:
            self._say(str(error))
            return
        found = self._diagnosis.findings
        self._findings.fill(finding_columns(self._diagnosis))
        self._findings.fit(3)
        self._findings.widget.visible = bool(found)
        self._examine.visible = False
        self._fill_structure()

    def _fill_structure(self) -> None:
        """Fill the tables of phases and call indices, of the calls that the filters select."""
        assert self._diagnosis is not None
        found = self._examined.structure(self.view)
        self._awaits_structure = found is None
        self._structured = found or Structure()
        self._structure.visible = bool(self._structured.phases)
        self._phases.fill(phase_columns(self._structured.phases, self._examined.run.tasks))
        self._ordinals.fill(calls_by_ordinal(self._structured.ordinals))
        of_run = self._examined.run.path if len(self.runs) > 1 else ""
        about = about_causes(self._diagnosis, found, of_run, bool(self.view.filters))
        self._doubts.text = f"<p>{html.escape(about)}</p>"

    def _mark_finding(self, number: int) -> None:
        finding = self._examined.causes.diagnosis.findings[number]
        marked = mark_finding(self.view, finding, number + 1, self._of_run)
        self._marks_of = marked.what, finding
        self.look(marked)

    def _mark_phase(self, number: int) -> None:
        phase = self._structured.phases[number].phase
        what = f"phase {phase}{self._of_run}"
        self._look(lambda view: view.marking(marks={"phase": str(phase)}, what=what))

    def _mark_ordinal(self, number: int) -> None:
        ordinals = self._structured.ordinals
        if ordinals is None:
            return
        chosen = calls_by_ordinal(ordinals)["ordinal"][number]
        marks = {"op": ordinals.op, "ordinal": chosen}
        marks |= {"size": ordinals.size} if ordinals.size is not None else {}
        what = f"call index {chosen} of the {ordinals.what}{self._of_run}"
        self._look(lambda view: view.marking(marks=marks, what=what))

    def _mark_rank(self, number: int) -> None:
        rank = int(self._ranks.source.data["rank"][number])
        self._look(lambda view: view.marking(ranks=(rank, rank), what=f"rank {rank}"))

    def _zoom_to_call(self, number: int) -> None:
        row = {name: column[number] for name, column in self._slowest.source.data.items()}
        start_s, duration_s = (round(float(row[name]), 9) for name in ("start_s", "duration_s"))
        call = Chosen(int(row["rank"]), start_s, duration_s, row["file"])
        self._look(lambda view: view.around_call(call, self.shown.run.tasks))

    def _zoom_to_marked(self) -> None:
        calls = self._panels[0].of_marked
        if not calls.count:
            return
        _, first, last = calls.ranks
        self._look(lambda view: view.around_calls(calls.extent_ns, first, last))
        if not self.view.is_marked:
            self._answers.say(NO_MARK)


def add_explorer(
    document: Document, runs: Sequence[Shown], query: Mapping[str, str], *, in_stages: bool = False
) -> Explorer:
    """Add the explorer to a document.

    `in_stages`: the page has the first pictures only until the browser has drawn them.
    """
    explorer = explorer_of(runs, query, in_stages=in_stages)
    attach(explorer, document)
    return explorer


def explorer_of(runs: Sequence[Shown], query: Mapping[str, str], *, in_stages: bool = False) -> Explorer:
    """Make the explorer of a link, which no document has yet (`add_explorer`)."""
    try:
        return Explorer(runs, first_view(query, runs), in_stages=in_stages)
    except EnsioError as error:
        explorer = Explorer(runs, View(), in_stages=in_stages)
        explorer._say(str(error))
        return explorer


def attach(explorer: Explorer, document: Document) -> None:
    """Add an explorer to a document; one in stages is completed when the browser has drawn it."""
    document.title = "ensio explorer"
    document.add_root(explorer.layout)
    # Models without a place on the page: the link and the texts to copy.
    document.add_root(explorer._link)
    if explorer.is_in_stages:
        document.add_root(explorer.painted)


def first_view(query: Mapping[str, str], runs: Sequence[Shown]) -> View:
    """Return the view of a link; without one, the first run and, of two runs, the second beside it."""
    view = View.from_query(query, len(runs))
    is_open = "run" not in query and "beside" not in query and len(runs) == 2
    return replace(view, beside=1) if is_open else view


def _whole(view: View) -> View:
    return replace(view, zoom_s=None, zoom_ranks=None)
