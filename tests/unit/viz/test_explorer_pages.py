"""Pages of the explorer's server are made and written before they are asked for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from bokeh.core.validation.check import check_integrity
from bokeh.document import Document
from made_runs import run_of

from ensembles.viz.common.serving import Door
from ensembles.viz.explorer import server as servers
from ensembles.viz.explorer.page import add_explorer, attach, explorer_of
from ensembles.viz.explorer.server import ExplorerServer
from ensembles.viz.explorer.shown import Shown
from ensembles.viz.explorer.view import View

TASKS = [
    [("open", 0.0, 0.01, 0), ("pwrite", 0.25, 0.5, 1 << 20), ("pwrite", 0.8, 0.02, 1 << 20)],
    [("open", 0.0, 0.02, 0), ("pread", 0.5, 0.5, 1 << 19)],
]


async def until(condition: Any) -> None:
    for _ in range(6_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing happened within a minute")


def test_a_page_of_the_first_view_is_made_ahead_and_given_once(tmp_path: Path) -> None:
    shown = Shown(run_of(tmp_path / "run", TASKS))

    async def use(door: Door) -> None:
        server = ExplorerServer([shown], door)
        ready = server._ready
        assert ready is not None
        assert ready[1].startswith("data:image/png")
        filtered, _ = server._made({"op": "write"})
        assert filtered.view.filters == {"op": "write"}
        assert server._made({}) is ready
        attach(ready[0], Document())  # no other document has it
        other, _ = server._made({})
        assert other is not ready[0]
        assert other.view == ready[0].view
        server._answered = time.monotonic() + 60
        server._prepare()  # too early
        assert not server._is_preparing
        server._answered = -servers._IDLE_S
        server._prepare()
        await until(lambda: server._ready is not None)
        # What has changed in the meantime is shown.
        shown.version += 1
        explorer, _ = server._made({})
        assert explorer.is_current()
        server._server._http.stop()

    with Door() as door:
        asyncio.run(use(door))


def test_a_document_is_written_ahead_and_anew_if_it_has_changed(tmp_path: Path) -> None:
    shown = Shown(run_of(tmp_path / "run", TASKS))
    written: list[Any] = []

    async def use() -> None:
        document = Document()
        explorer = add_explorer(document, [shown], {})
        make = document.to_json

        def counted(*, deferred: bool = True) -> Any:
            written.append(make(deferred=deferred))
            return written[-1]

        document.to_json = counted  # type: ignore[method-assign]
        servers._write_ahead(document)
        await until(lambda: written)
        assert document.to_json() is written[0]
        assert len(written) == 1
        assert document.to_json() is written[1]
        servers._write_ahead(document)
        await until(lambda: len(written) == 3)
        explorer.look(View(filters={"op": "write"}))
        assert document.to_json() is written[3]
        assert "op=write" in str(written[3].content)

    asyncio.run(use())


def test_documents_of_pages_are_valid(tmp_path: Path) -> None:
    """The server does not check them, because a page waits for it."""
    shown = Shown(run_of(tmp_path / "run", TASKS))
    for is_complete in (False, True):
        document = Document()
        explorer = explorer_of([shown], {}, in_stages=True)
        attach(explorer, document)
        if is_complete:
            explorer.complete()
        found = check_integrity(document.models)
        assert not found.error
        assert not found.warning
