"""The pages of a history from a server: what was added is on the next page that is opened."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, HTTPError, RequestHandler

from ensembles.history.check import Check, check
from ensembles.history.store import History, StoredRun
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text
from ensembles.run.open import open as open_run
from ensembles.viz.history.data import experiment_data
from ensembles.viz.history.pages import (
    SCRIPT,
    all_experiments_page,
    checked,
    experiment_page,
    experiment_rows,
    no_runs,
    script_text,
)
from ensembles.viz.report import page_of_run
from ensembles.viz.serving import LOOPBACK, REFUSED, host_of, is_token, listen

VERDICTS = ("regression", "improvement", "ok", "too-few-runs")

_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Pages load nothing from elsewhere. Bokeh makes functions from the text of its callbacks."""


class HistoryServer:
    """A running server of the pages of a history.

    Parameters
    ----------
    history : History
        It is only read.
    address : str
        Address to listen on.
    port : int
        0: a free one.

    Attributes
    ----------
    token : str
        What the first request of a browser must carry.
    link : str
        What to open in the browser.

    Raises
    ------
    EnsioError
        The history holds no run, or the address or the port cannot be used.
    """

    def __init__(self, history: History, address: str = LOOPBACK[0], port: int = 0) -> None:
        if not history.experiments():
            raise no_runs()
        self.token = secrets.token_urlsafe(24)
        sockets, self.port = listen(address, port)
        common = {
            "pages": _Pages(history),
            "token": self.token,
            # One database transaction, or one report, at a time: the server stays small.
            "threads": ThreadPoolExecutor(1),
            "cookie": f"ensio-{self.port}",
        }
        self._server = HTTPServer(
            Application(
                [
                    (r"/", _Index, common),
                    (r"/experiment", _Experiment, common),
                    (r"/report", _Report, common),
                    (rf"/{SCRIPT}", _Script, common),
                ],
                default_handler_class=_Missing,
                default_handler_args=common,
            )
        )
        self._server.add_sockets(sockets)
        self.link = f"http://{host_of(address)}:{self.port}/?{urlencode({'token': self.token})}"

    def run(self) -> None:
        """Serve until the program is interrupted."""
        loop = IOLoop.current()
        try:
            loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            self._server.stop()


class _Pages:
    """The pages as texts. The checks are kept until the history changes."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._state: tuple[int, ...] | None = None
        self._checks: dict[str, Check] = {}

    def checks(self) -> dict[str, Check]:
        state = self.history.state()
        if state != self._state:
            self._checks, self._state = checked(self.history), state
        return self._checks

    def index(self, label: str, status: str) -> str:
        checks = {name: one for name, one in self.checks().items() if status in ("", one.verdict)}
        rows = experiment_rows(self.history, checks, _labels(label))
        names = {row.check.experiment: {"name": row.check.experiment} for row in rows}
        more = {"label": label} if label else {}
        links = {name: f"experiment?{urlencode(query | more)}" for name, query in names.items()}
        form = self._form(label, "./") | {"status": status, "verdicts": VERDICTS}
        return all_experiments_page(rows, links, len(self.history.experiments()), form=form)

    def experiment(self, name: str, run: str, label: str) -> str:
        found = self.checks().get(name) or check(self.history, name, compared=False)
        wanted = self._run(run) if run else None
        if wanted is not None and wanted.experiment != name:
            raise EnsioError(f"run {run} is not of {name}")
        data = experiment_data(self.history, found, _labels(label), until=wanted)
        ids = [one.id for one in data.runs]
        if wanted is not None and wanted.id not in ids:
            raise EnsioError(f"run {run} does not have the label {label}")
        chosen = len(ids) - 1 if wanted is None else ids.index(wanted.id)
        form = self._form(label, f"experiment?{urlencode({'name': name})}") | {"hidden": {"name": name}}
        index = f"./?{urlencode({'label': label})}" if label else "./"
        report = {"run": ids[chosen], "address": "report?run="}
        return experiment_page(data, index, chosen, form=form, report=report)

    def report(self, run: str) -> str:
        wanted = self._run(run)
        try:
            return page_of_run(open_run(wanted.path))
        except EnsioError as error:
            raise EnsioError(
                f"the history keeps summaries only, and run {wanted.id} cannot be read any more: {error}"
            ) from None

    def _run(self, text: str) -> StoredRun:
        found = self.history.run(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None
        if found is None:
            raise EnsioError(f"there is no run {text}")
        return found

    def _form(self, label: str, whole: str) -> dict[str, Any]:
        return {"label": label, "labels": self.history.labels(), "whole": whole, "hidden": {}}


def _labels(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if text and not (name and equals):
        raise EnsioError(f'"{text}" is not a label: write NAME=VALUE')
    return {name: value} if text else {}


class _Handler(RequestHandler):
    """Answers with a page, or with one sentence."""

    def initialize(self, pages: _Pages, token: str, threads: ThreadPoolExecutor, cookie: str) -> None:
        self._pages, self._token, self._threads, self._cookie = pages, token, threads, cookie

    def set_default_headers(self) -> None:
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")

    def prepare(self) -> None:
        given = self.get_query_argument("token", None)
        if given is not None and is_token(given, self._token):
            # The address that stays in the browser has no token: it can be sent on.
            self.set_cookie(self._cookie, self._token, httponly=True, samesite="Lax")
            rest = [
                (name, value.decode())
                for name, values in self.request.query_arguments.items()
                for value in values
                if name != "token"
            ]
            self.redirect(self.request.path + (f"?{urlencode(rest)}" if rest else ""))
        elif not is_token(self.get_cookie(self._cookie) or "", self._token):
            raise HTTPError(403, reason=REFUSED)

    async def answer(self, make: Callable[..., str], *arguments: str) -> None:
        page = await IOLoop.current().run_in_executor(self._threads, make, *arguments)
        self.finish(page.encode(errors="replace"))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None))[1]
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if isinstance(error, EnsioError):
            self.set_status(404)
            self.finish(f"{sanitize_text(str(error))}\n")
        else:
            self.finish(f"{self._reason}\n")

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, EnsioError):
            super().log_exception(typ, value, tb)

    def _text(self, name: str) -> str:
        return str(self.get_query_argument(name, ""))


class _Index(_Handler):
    async def get(self) -> None:
        await self.answer(self._pages.index, self._text("label"), self._text("status"))


class _Experiment(_Handler):
    async def get(self) -> None:
        await self.answer(self._pages.experiment, self._text("name"), self._text("run"), self._text("label"))


class _Report(_Handler):
    async def get(self) -> None:
        await self.answer(self._pages.report, self._text("run"))


class _Script(_Handler):
    async def get(self) -> None:
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=86400")
        await self.answer(script_text)


class _Missing(_Handler):
    async def get(self) -> None:
        raise HTTPError(404, reason="there is no such page")
