"""Both servers of pages beside other users of the machine: whom they let in, and what these can use up."""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from made_runs import run_of

from ensembles.history.record import RunRecord
from ensembles.history.store import History
from ensembles.viz.common.serving import MOST_STRANGERS

KINDS = ("run", "history")

WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("served")
    run = run_of(folder / "run", [[("pwrite", 0.25, 0.5, 1 << 20, 0)]])
    place = str(folder / "runs.db")
    History(place, make=True).add(RunRecord.of_run(run), "nightly")
    return {"run": run.path, "history": place}


class Served:
    """A server, and requests to it."""

    def __init__(self, link: str, errors: Any) -> None:
        self.link, self.address, self.errors = link, urlsplit(link), errors
        self.token = self.address.query.removeprefix("token=")
        _, headers, _ = self.ask(f"/?{self.address.query}")
        self.cookie, self.base = headers["Set-Cookie"].partition(";")[0], headers["Location"]

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        assert self.address.hostname is not None
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=600)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        return found

    def printed(self) -> str:
        """What it has printed on standard error."""
        self.errors.seek(0)
        return str(self.errors.read())


@contextlib.contextmanager
def serving(place: str, *options: str, files: int = 0) -> Iterator[Served]:
    def limited() -> None:
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = [sys.executable, "-m", "ensembles.cli.main", "serve", place, *options]
    with tempfile.TemporaryFile("w+") as errors:
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=limited
        )
        assert server.stdout is not None
        try:
            yield Served(server.stdout.readline().strip(), errors)
        finally:
            server.terminate()
            server.communicate(timeout=600)


@pytest.fixture(scope="module", params=KINDS)
def served(request: pytest.FixtureRequest, places: dict[str, str]) -> Iterator[Served]:
    with serving(places[request.param], "--allow-origin", "proxy.example:8888") as found:
        yield found


def test_a_session_is_no_token_and_is_sent_to_no_other_path(served: Served) -> None:
    seen = set()
    for _ in range(2):
        status, headers, _ = served.ask(f"/?a=1&{served.address.query}&b=%26")
        assert status == 302
        assert headers["Location"] == f"{served.base}?a=1&b=%26"
        cookie, *attributes = headers["Set-Cookie"].split("; ")
        assert set(attributes) == {f"Path={served.base}", "HttpOnly", "SameSite=Lax"}
        assert served.token not in cookie
        seen.add(cookie)
        assert served.ask(served.base, Cookie=cookie)[0] == 200
    assert len(seen) == 2
    assert len(served.base) > 16


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=x", "/?token=%ff", "/other", "BASE", "BASEws", "BASEother"]
)
def test_without_the_link_nothing_is_told(served: Served, path: str) -> None:
    for headers in ({}, {"Cookie": "ensio=x"}, {"Cookie": f"ensio={served.token}"}, WEBSOCKET):
        status, answered, text = served.ask(path.replace("BASE", served.base), **headers)
        assert (status, text) == (403, "open the link that ensio serve printed: it ends in a token\n")
        assert "Upgrade" not in answered
    assert served.ask("/", Cookie=served.cookie)[0] == 403


def test_every_answer_has_the_same_headers(places: dict[str, str], served: Served) -> None:
    answers = [served.ask(served.base, Cookie=served.cookie), served.ask("/"), served.ask("/", "POST")]
    for _, headers, _ in answers:
        policy = headers["Content-Security-Policy"].split("; ")
        assert "default-src 'none'" in policy
        host = served.address.netloc
        assert f"connect-src 'self' ws://{host} wss://{host}" in policy
        assert "frame-ancestors 'self' http://proxy.example:8888 https://proxy.example:8888" in policy
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_names_that_others_can_lead_here_are_refused(served: Served) -> None:
    for name in ("evil.example", f"evil.example:{served.address.port}", ""):
        status, _, text = served.ask(f"/?{served.address.query}", Host=name)
        assert (status, text.startswith("this server is not known by this name")) == (403, True)
    for name in ("localhost:1", "127.0.0.1", "[::1]:80", "PROXY.example:1", socket.gethostname()):
        assert served.ask(served.base, Cookie=served.cookie, Host=name)[0] == 200


def test_a_link_leads_nowhere_else(served: Served) -> None:
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example", f"{served.base}/evil.example"):
        _, headers, _ = served.ask(f"{path}?{served.address.query}")
        assert headers["Location"].startswith(served.base)


def test_a_page_does_not_repeat_the_session(served: Served) -> None:
    text = served.ask(served.base, Cookie=served.cookie)[2]
    assert served.cookie.partition("=")[2] not in text
    assert served.token not in text


def test_the_log_has_no_token_and_strangers_do_not_fill_it(served: Served) -> None:
    before = served.printed()
    for _ in range(3):
        served.ask(f"/?{served.address.query}", "POST")
        served.ask(f"{served.base}ws?{served.address.query}", **WEBSOCKET)
        served.ask("/nothing?token=%ff", "DELETE")
        served.ask(f"{served.base}metadata?x=%ff", Cookie=served.cookie)
        with socket.create_connection((served.address.hostname, served.address.port)) as other:
            other.sendall(b"no request\r\n\r\n")
            other.recv(1000)
    assert served.printed() == before
    assert served.token not in before


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("ws", {"Sec-WebSocket-Protocol": "chat, x"}),
        ("ws", {"Sec-WebSocket-Protocol": "bokeh, eyJ4Ijp9.abc"}),
        ("ws", {"Origin": "http://[::1"}),
        ("static/%00", {}),
    ],
)
def test_a_request_that_no_page_makes_is_a_line_in_the_log(
    served: Served, path: str, headers: dict[str, str]
) -> None:
    before = served.printed()
    served.ask(served.base + path, Cookie=served.cookie, **(WEBSOCKET if path == "ws" else {}), **headers)
    assert served.ask(served.base, Cookie=served.cookie)[0] == 200
    logged = served.printed().removeprefix(before)
    assert logged.count("\n") <= 1
    assert "Traceback" not in logged
    assert served.base not in logged


@pytest.mark.parametrize(("kind", "files"), [("run", 0), ("history", MOST_STRANGERS)])
def test_connections_of_strangers_keep_no_reader_out(places: dict[str, str], kind: str, files: int) -> None:
    with serving(places[kind], files=files) as served, contextlib.ExitStack() as opened:
        for _ in range(MOST_STRANGERS + 40):
            other = socket.create_connection((served.address.hostname, served.address.port))
            opened.enter_context(other)
            other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")  # and never the end of the headers
        assert served.ask(f"/?{served.address.query}")[0] == 302
        assert served.ask(served.base, Cookie=served.cookie)[0] == 200
        said = [line for line in served.printed().splitlines() if "connections wait" in line]
        assert len(said) == bool(files)
        assert "Traceback" not in served.printed()
