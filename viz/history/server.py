"""The pages of a history from a server: what was added is on the next page that is opened."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlencode

from tornado.ioloop import IOLoop
from tornado.web import HTTPError

from ensembles.history.check import Check, check
from ensembles.history.store import History, StoredRun
from ensembles.model.errors import EnsioError
from ensembles.model.units import NS_PER_S
from ensembles.run.open import open_as
from ensembles.run.run import Run
from ensembles.viz.common.serving import Door, Guarded, GuardedApplication, PageServer
from ensembles.viz.history.pages import (
    SCRIPT,
    all_experiments_page,
    checked,
    experiment_data,
    experiment_page,
    experiment_rows,
    no_runs,
    script_text,
)
from ensembles.viz.report.page import page_of_run

VERDICTS = ("regression", "improvement", "ok", "too-few-runs")


# Names may have bytes that are not UTF-8.
_query = partial(urlencode, errors="surrogateescape")


class HistoryServer:
    """A running server of the pages of a history."""

    def __init__(self, history: History, door: Door) -> None:
        if not history.experiments():
            raise no_runs()
        # One database transaction, or one report, at a time: the server stays small.
        common = {"pages": _Pages(history), "threads": ThreadPoolExecutor(1)}
        application = GuardedApplication(
            [
                (rf"{door.base}/", _Index, common),
                (rf"{door.base}/experiment", _Experiment, common),
                (rf"{door.base}/report", _Report, common),
                (rf"{door.base}/{SCRIPT}", _Script, common),
            ],
            default_handler_class=_Missing,
            default_handler_args=common,
            **door.settings(),
        )
        self._server = PageServer(application, door)

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
        links = {name: f"experiment?{_query(query | more)}" for name, query in names.items()}
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
        if not ids:
            raise EnsioError(f"no run of {name} can be read: ensio history check names them")
        chosen = len(ids) - 1 if wanted is None else ids.index(wanted.id)
        form = self._form(label, f"experiment?{_query({'name': name})}") | {"hidden": {"name": name}}
        index = f"./?{_query({'label': label})}" if label else "./"
        report = {"run": ids[chosen], "address": "report?run="}
        return experiment_page(data, index, chosen, form=form, report=report)

    def report(self, run: str) -> str:
        wanted = self._run(run)
        try:
            lying = open_as(Run, wanted.path)
            late_s = lying.info.origin_unix_ns / NS_PER_S - wanted.start.timestamp()
            if lying.tasks != wanted.tasks or abs(late_s) > 1e-3:
                raise EnsioError(f"another run lies in {wanted.path} now")
            return page_of_run(lying)
        except EnsioError as error:
            raise EnsioError(
                f"the history keeps summaries only, and run {wanted.id} cannot be read any more: {error}"
            ) from None

    def _run(self, text: str) -> StoredRun:
        numbers = [int(text)] if text.isascii() and text.isdigit() and len(text) < 10 else []
        for found in self.history.runs(numbers=numbers):
            return found
        raise EnsioError(f"there is no run {text}")

    def _form(self, label: str, whole: str) -> dict[str, Any]:
        return {"label": label, "labels": self.history.labels(), "whole": whole, "hidden": {}}


def _labels(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if text and not (name and equals):
        raise EnsioError(f'"{text}" is not a label: write NAME=VALUE')
    return {name: value} if text else {}


class _Handler(Guarded):
    """Answers with a page, or with one sentence."""

    def initialize(self, pages: _Pages, threads: ThreadPoolExecutor) -> None:
        self._pages, self._threads = pages, threads

    async def answer(self, make: Callable[..., str], *arguments: str) -> None:
        page = await IOLoop.current().run_in_executor(self._threads, make, *arguments)
        self.finish(page.encode(errors="replace"))

    def _text(self, name: str) -> str:
        return str(self.get_query_argument(name, ""))

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        return value.decode(errors="surrogateescape")


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
