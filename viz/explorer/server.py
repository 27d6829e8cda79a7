"""The explorer in a browser: a Bokeh server that answers only to a token, on this machine.

A run in progress in the explorer.

The page of a run that has not begun to record: it gives way to the explorer when the run has begun.
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from bokeh.application import Application
from bokeh.application.handlers import FunctionHandler
from bokeh.document import Document
from bokeh.models import ColumnDataSource
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.settings import settings
from PIL import Image
from tornado.ioloop import IOLoop

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.run.follow import EVERY_S, RunInProgress, looks_until_begun
from ensembles.viz.common.mixed import EMPHASIS
from ensembles.viz.common.serving import Door, Guarded, GuardedApplication, PageServer
from ensembles.viz.common.style import COLOURS
from ensembles.viz.common.theme import legend_keys_program, theme_program
from ensembles.viz.explorer.background import Background
from ensembles.viz.explorer.page import Explorer, attach, explorer_of
from ensembles.viz.explorer.panel import keys_program
from ensembles.viz.explorer.shown import Shown

# The colours are those of the report, light and dark (viz/common/theme.js). The page uses neither of the
# scripts that are left out, the larger half of Bokeh; the tables are loaded when the first picture has been
# painted.
_PAGE = """
{% block js_resources %}
<meta name="viewport" content="width=device-width, initial-scale=1">
{% set later = [] %}
{% for line in bokeh_js.splitlines() if "bokeh-mathjax" not in line and "bokeh-gl" not in line %}
{% if "bokeh-tables" in line and 'src="' in line %}
{% if later.append(line.split('src="')[1].split('"')[0]) %}{% endif %}
{% else %}
{{ line|replace("<script src", "<script defer src")|replace("<script>", '<script type="module">')|safe }}
{% endif %}
{% endfor %}
<script type="module">
  {{ programs|safe }}
  window.ensioTheme.followServer();
  window.ensioLegendKeys.followServer();
  const first = document.getElementById("first-image");
  const load = (address) => new Promise((loaded) => {
    const script = document.createElement("script");
    Object.assign(script, {src: address, onload: loaded});
    document.head.append(script);
  });
  const painted = async () => {
    explorerKeys(Bokeh, document.body);
    fitRows(Bokeh, document.body);
    await Promise.all([{% for address in later %}load("{{ address|safe }}"), {% endfor %}]);
    const named = (name) => Bokeh.documents[0].get_model_by_name(name);
    document.addEventListener("pointerdown", () => {
      named("touched").data = {at: [performance.now()]};
    }, {capture: true});
    named("painted").data = {views: ["explorer_trace"]};
  };
  const look = () => {
    const [view] = Bokeh.index.query((each) => each.model.name === "explorer_trace");
    if (view?.root.has_finished()) {
      first?.remove();
      requestAnimationFrame(() => setTimeout(painted));
    } else requestAnimationFrame(look);
  };
  look();
  setTimeout(() => first?.remove(), 30000); // where the connection fails
</script>
{% endblock %}
{% block contents %}
{% if first_image %}
<div id="first-image" role="status">
  <p>The trace diagram of the run; its axes, filters and the other pictures follow.</p>
  <img alt="" elementtiming="first-image" src="{{ first_image|safe }}">
</div>
{% endif %}
{{ super() }}
{% endblock %}
{% block postamble %}
<link rel="icon" href="data:,">
<style>
  #first-image { position: fixed; inset: 0; z-index: 9; background: inherit; padding: 8px 14px; }
  #first-image p { margin: 60px 0 50px; }
  #first-image img { display: block; margin-left: 64px; width: calc(100% - 100px); height: 370px; }
  body { background: inherit; }
  body { margin: 8px 14px; font-family: system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
  :root { color-scheme: light dark; background: #fff; color: #222; --ensio-alert: #b00020; }
  @media screen and (prefers-color-scheme: dark) {
    :root { background: #1d1d21; color: #e6e6ea; --ensio-alert: #ff8f8f;
      --ensio-widget-filter: invert(0.885) hue-rotate(180deg); --ensio-filtered-text: #111;
      --ensio-widget: #1d1d21; --ensio-widget-text: #e6e6ea; --ensio-widget-active: #3b3b41; }
  }
</style>
{% endblock %}"""


_IDLE_S = 2.0
"""Time without a question after which a page is made ahead."""


def _write_ahead(document: Document) -> None:
    """Write a document while the browser loads its program, so that it need not wait when it asks for it."""
    make: Callable[..., Any] = document.to_json
    written: list[Any] = []

    def to_json(*, deferred: bool = True) -> Any:
        return written.pop() if written and deferred else make(deferred=deferred)

    def write() -> None:
        document.on_change(lambda event: written.clear())
        written.append(make())

    document.to_json = to_json  # type: ignore[method-assign]
    IOLoop.current().call_later(0.03, write)  # the page has been sent by then


class _Application(GuardedApplication, BokehTornado):
    """Bokeh's server of one page, behind a door."""


class ExplorerServer:
    """A running server of the explorer."""

    def __init__(self, runs: Sequence[Shown], door: Door) -> None:
        settings.perform_document_validation = False  # tests do it; a page waits for it

        def make(document: Document) -> None:
            arguments = getattr(document.session_context, "request").arguments  # noqa: B009 # not in the stubs
            query = {
                name: values[0].decode("utf-8", "replace") for name, values in arguments.items() if values
            }
            # A text extends Bokeh's own page, which the stubs do not know.
            document.template = _PAGE  # type: ignore[assignment]
            programs = [theme_program(), legend_keys_program(), keys_program()]
            document.template_variables["programs"] = "\n".join(programs)
            with runs[0].answering(quiet_s=2.0):  # the browser needs processors
                explorer, image = self._made(query)
                attach(explorer, document)
                document.add_root(self._touched())
            _write_ahead(document)
            document.template_variables["first_image"] = image
            if any(shown.is_growing for shown in runs):
                document.add_periodic_callback(explorer.renew, 200)

        self._followed = [shown for shown in runs if isinstance(shown, Followed)]
        # The first page is made before its reader opens it.
        self._runs, self._answered = runs, 0.0
        self._ready: tuple[Explorer, str] | None = self._make({})
        self._is_preparing = False
        tornado = _Application(
            {"/": Application(FunctionHandler(make))},
            prefix=door.base,
            extra_websocket_origins=door.origins,
            include_headers=[],  # the page does not repeat the cookie
            include_cookies=[],
            # Sessions are signed: a connection needs a page that this server made.
            sign_sessions=True,
            secret_key=secrets.token_urlsafe(32).encode(),
            use_index=False,
            **door.settings(),
        )
        self._server = BaseServer(IOLoop.current(), tornado, PageServer(tornado, door))

    def _touched(self) -> ColumnDataSource:
        """Make what the page changes when a button of the mouse is pressed: a question follows soon."""
        touched = ColumnDataSource({"at": []}, name="touched")

        def rest(attribute: str, old: Any, new: Any) -> None:
            for shown in self._runs:
                with shown.answering(quiet_s=1.0):
                    pass

        touched.on_change("data", rest)
        return touched

    def _make(self, query: Mapping[str, str]) -> tuple[Explorer, str]:
        explorer = explorer_of(self._runs, query, in_stages=True)
        # What models compute when they join a document, they have when they join the one of the page.
        before = Document()
        attach(explorer, before)
        before.clear()
        return explorer, first_image(explorer)

    def _made(self, query: Mapping[str, str]) -> tuple[Explorer, str]:
        """Return an explorer for a page: the one that was made ahead, if the page has the first view."""
        self._answered = time.monotonic()
        if not query and self._ready is not None:
            ready, self._ready = self._renewed(self._ready), None
            return ready
        return self._make(query)

    def _renewed(self, ready: tuple[Explorer, str]) -> tuple[Explorer, str]:
        explorer, image = ready
        if explorer.is_current():
            return ready
        explorer.renew()
        return explorer, image if explorer.shown.is_large else first_image(explorer)

    def _prepare(self) -> None:
        """Make the next page ahead, when nothing has been asked for a while."""
        last = max(self._answered, *(shown.answered for shown in self._runs))
        is_ready = self._ready is not None and self._ready[0].is_current()
        if time.monotonic() - last > _IDLE_S and not is_ready and not self._is_preparing:
            # In a thread, so that a question which comes in the meantime is answered at once.
            ready, self._ready, self._is_preparing = self._ready, None, True
            make = partial(self._make, {}) if ready is None else partial(self._renewed, ready)
            self._server.io_loop.run_in_executor(None, make).add_done_callback(self._prepared)
        self._server.io_loop.call_later(_IDLE_S / 4, self._prepare)

    def _prepared(self, made: Any) -> None:
        self._is_preparing = False
        if not made.cancelled() and made.exception() is None:
            self._ready = made.result()

    def run(self) -> None:
        """Serve until the program is interrupted."""
        self._server.start()
        for shown in self._runs:
            with shown.answering(quiet_s=5.0):  # only what zooms need is read
                pass
        if self._followed:
            self._server.io_loop.add_callback(self._refresh)
        else:
            self._server.io_loop.add_callback(self._prepare)
        try:
            self._server.io_loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            self._server.stop()

    def _refresh(self) -> None:
        """Read the runs that go on, and do it again later; a slow reading leaves time to answer pages."""
        began = time.monotonic()
        for shown in self._followed:
            try:
                shown.refresh()
            except EnsioError as error:
                shown.notes = [str(error)]
                shown.version += 1
        again_s = max(EVERY_S, 2 * (time.monotonic() - began))
        self._server.io_loop.call_later(again_s, self._refresh)


def first_image(explorer: Explorer) -> str:
    """Return the address of the image of the first run, which has its bytes; empty: the run has no calls."""
    shares, classes = explorer.first_shares()
    return (
        ""
        if shares is None
        else f"data:image/png;base64,{base64.b64encode(png_of(shares, classes)).decode()}"
    )


def png_of(shares: np.ndarray, classes: Sequence[str]) -> bytes:
    """Draw shares of time as a PNG: a colour for each class, opacity for the part of the time."""
    few = _joined(_joined(shares.astype(np.float32), 0, 330), 1, 1024)
    total = few.sum(axis=2)
    colours = np.array([[int(COLOURS[name][at : at + 2], 16) for at in (1, 3, 5)] for name in classes])
    mixed = few @ colours.astype(np.float32) / np.maximum(total, 1e-9)[:, :, None]
    alpha = 255 * np.minimum(total / 255, 1) ** EMPHASIS
    pixels = np.rint(np.concatenate([mixed, alpha[:, :, None]], axis=2)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG", compress_level=1)
    return file.getvalue()


def _joined(values: np.ndarray, axis: int, most: int) -> np.ndarray:
    """Average neighbours along an axis until there are at most so many."""
    count = -(-values.shape[axis] // most)
    if count == 1:
        return values
    starts = np.arange(0, values.shape[axis], count)
    sizes = np.diff(np.append(starts, values.shape[axis]))
    shape = [-1 if at == axis else 1 for at in range(3)]
    averages: np.ndarray = np.add.reduceat(values, starts, axis=axis) / sizes.reshape(shape)
    return averages


class Followed(Shown):
    """The latest calls (a million) of a run in progress; `refresh` reads what was recorded since."""

    is_growing = is_part = True

    def __init__(self, path: str, most_events: int = 1_000_000) -> None:
        self.progress = RunInProgress(path, most_events)
        super().__init__(self.progress.run)
        self._causes_in_background = Background(lambda key, error: self._failed(error))
        if self.progress.has_ended:
            self.find_causes()

    def _held_calls(self, most_events: int, in_background: bool) -> Events:
        self.notes = self.progress.notes
        return self._with_derived(self.progress.events)

    def _with_derived(self, events: Events) -> Events:
        """Number phases of the calls, and their ordinals if all of them are held."""
        return self.run.reading.numbered(events, _unknown if self.progress.left_out else None)

    def refresh(self) -> bool:
        """Read what was recorded since the last time."""
        news = self.progress.refresh()
        self.run, self.notes = self.progress.run, self.progress.notes
        if news:
            self.events = self._with_derived(self.progress.events)
            self.version += 1
            self._begin()
            self.__dict__.pop("causes", None)
            if self.progress.has_ended:
                self.find_causes()
        return news

    @property
    def examines(self) -> bool:
        """Whether causes are examined without being asked for: the run has ended."""
        return self.progress.has_ended

    @property
    def knows_causes(self) -> bool:
        """Whether causes have been examined for the calls so far."""
        return "causes" in self.__dict__

    def _find_causes(self) -> Iterator[None]:
        version = self.version
        assert self.causes is not None
        if version != self.version:  # the run went on
            self.__dict__.pop("causes", None)
        self.version += 1
        yield


def wait_for_run(path: str, say: Callable[[str], None]) -> Followed:
    """Wait until a run has begun to record, and follow it."""
    for _ in looks_until_begun(path, say):
        time.sleep(EVERY_S)
    return Followed(path)


def _unknown() -> None:
    """The ordinals of calls of which earlier ones are not held."""


_WAITING_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8"><meta http-equiv="refresh" content="1"><link rel="icon" href="data:,">
<title>ensio explorer</title>
<style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}</style>
<p role="status">{sentence} This page shows the run as soon as it does.</p>
</html>"""


class _Waiting(Guarded):
    """Answers every request by the same page."""

    def initialize(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def get(self) -> None:
        """Say what is waited for."""
        where = ", ".join(map(html.escape, self._paths))
        self.write(_WAITING_PAGE.format(sentence=f"No process has begun to record into {where}."))


def wait_at(
    door: Door, paths: Sequence[str], say: Callable[[str], None], announce: Callable[[str], None]
) -> None:
    """Wait until runs have begun to record, and answer with a page that says so."""

    async def wait() -> None:
        server: PageServer | None = None
        for path in paths:
            for _ in looks_until_begun(path, said.append):
                if server is None:
                    waiting = (".*", _Waiting, {"paths": paths})
                    server = PageServer(GuardedApplication([waiting], **door.settings()), door)
                    announce(door.link)
                while said:
                    say(said.pop(0))
                await asyncio.sleep(EVERY_S)
        if server is not None:
            server.stop()
            await server.close_all_connections()

    said: list[str] = []
    IOLoop.current().run_sync(wait)
