"""``viz.explore`` behind a real JupyterHub: its proxy, a server of one user, one forwarded port.

Needs jupyterhub (PyPI) and configurable-http-proxy (npm, or Debian's node-configurable-http-proxy).
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import run_of

LIBRARIES = ("anywidget", "jupyterlab", "jupyterhub", "playwright", "PIL")
if lacking := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
    pytest.skip(f"{lacking[0]} is not installed: JupyterHub is not tried", allow_module_level=True)

from browser import FLAGS, PATIENCE_MS, chromium  # noqa: E402
from explorer_page import HOSTILE, TASKS, drag, found  # noqa: E402
from one_port import forwarded  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
from test_explore_in_jupyter import Lab, _wait_for, notebook  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on PATH: JupyterHub is not tried"),
    pytest.mark.skipif(
        shutil.which("configurable-http-proxy") is None,
        reason="no configurable-http-proxy on PATH: JupyterHub is not tried",
    ),
]

_SETTINGS = """
c.JupyterHub.bind_url = "http://127.0.0.1:{proxy}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "a-password-of-the-test"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}"
c.Spawner.args = ["--allow-root"]
c.Spawner.environment = {environment}
c.Spawner.default_url = "/lab"
"""


_DEBIAN_MODULES = "/usr/share/nodejs"
"""Modules of Debian's configurable-http-proxy: a node by others does not look there."""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def hub(tmp_path: Path):
    """A hub with its own folder: the address of a proxy that forwards its port, and the folder."""
    run_of(tmp_path / "run", TASKS, path=HOSTILE)
    (tmp_path / "story.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    port, own, api = free_ports(3)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "PYTHONPATH", "PYTHONSAFEPATH", "JUPYTER_PATH", "JUPYTER_CONFIG_PATH")
    }
    settings = tmp_path / "hub.py"
    settings.write_text(
        _SETTINGS.format(proxy=port, hub=own, api=api, folder=tmp_path, environment=environment)
    )
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(settings)],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {"NODE_PATH": _DEBIAN_MODULES},
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/hub", server, tmp_path / "log")
        with forwarded(port) as proxy:
            yield f"http://127.0.0.1:{proxy}", tmp_path
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=600)


class HubLab(Lab):
    """A notebook in JupyterLab behind a hub, of a user who has logged in."""

    def __init__(self, page, address: str) -> None:
        page.goto(f"{address}/hub/login")
        page.fill("input[name=username]", "reader")
        page.fill("input[name=password]", "a-password-of-the-test")
        page.click("input[type=submit], button[type=submit]")
        page.wait_for_url("**/user/reader/lab**")
        super().__init__(page, address, "user/reader/lab/tree", "")

    def ready(self) -> None:
        self.page.locator(".jp-Notebook .jp-CodeCell").nth(2).wait_for()
        self.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()

    def run_cell(self, number: int) -> None:
        """Run a cell by the keyboard: single-user servers do not show their application to the page."""
        cell = self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")


def test_the_explorer_works_both_ways_behind_a_hub(hub) -> None:
    address, _ = hub
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = running.new_page(viewport={"width": 1500, "height": 1600})
        page.set_default_timeout(PATIENCE_MS)
        lab = HubLab(page, address)
        lab.run_cell(0)
        lab.explorer()
        found(lab.page, "5 calls are shown")
        lab.page.keyboard.press("Escape")
        lab.page.wait_for_timeout(2000)  # the notebook scrolls to the cell that has run
        drag(lab.page, "explorer_histogram", (0.3, 1.0), (0.9, 1.5))
        found(lab.page, "2 calls are marked, of 2 of 2 ranks")
        lab.run_cell(1)
        found(lab.page, "1 call is shown, of 1 of 2 ranks")
        lab.run_cell(2)
        lab.page.get_by_text("marked 1 op=read").wait_for()
        if folder := os.environ.get("ENSIO_TEST_PICTURES"):
            lab.page.screenshot(path=f"{folder}/jupyterhub.png")
        requests = [problem for problem in lab.problems if problem.startswith("request")]
        running.close()
    assert requests == []
