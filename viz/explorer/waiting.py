"""The page of a run that has not begun to record: it gives way to the explorer when the run has begun."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Sequence

from tornado.ioloop import IOLoop

from ensembles.run.follow import EVERY_S, looks_until_begun
from ensembles.viz.common.serving import Door, Guarded, GuardedApplication, PageServer

_PAGE = """<!DOCTYPE html>
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
        self.write(_PAGE.format(sentence=f"No process has begun to record into {where}."))


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
