"""The explorer in a browser: a Bokeh server that answers only to a token, on this machine."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from bokeh.application import Application
from bokeh.application.handlers import FunctionHandler
from bokeh.document import Document
from bokeh.server.auth_provider import AuthProvider
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler

from ensembles.model.errors import EnsioError
from ensembles.viz.explorer.page import add_explorer
from ensembles.viz.explorer.shown import Shown

LOOPBACK = "127.0.0.1"


class _Token(AuthProvider):
    """Refuses every request for a page or its connection that does not carry the token."""

    def __init__(self, token: str) -> None:
        self._token = token
        super().__init__()

    @property
    def get_user(self) -> Callable[[Any], Any]:
        def check(handler: RequestHandler) -> str:
            given = handler.get_query_argument("token", "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise HTTPError(403, reason="open the link that ensio serve printed: it ends in a token")
            return "reader"

        return check

    @property
    def login_url(self) -> str:
        return "/"  # never used: a request without the token is refused


class ExplorerServer:
    """A running server of the explorer.

    Parameters
    ----------
    runs : sequence of Shown
    address : str
        Address to listen on.
    port : int
        0: a free one.
    origins : sequence of str
        ``HOST:PORT`` of further pages that may connect, such as those of a proxy.

    Attributes
    ----------
    token : str
        What a link must carry.
    link : str
        What to open in the browser.

    Raises
    ------
    EnsioError
        The address or the port cannot be used.
    """

    def __init__(
        self, runs: Sequence[Shown], address: str = LOOPBACK, port: int = 0, origins: Sequence[str] = ()
    ) -> None:
        self.token = secrets.token_urlsafe(24)

        def make(document: Document) -> None:
            arguments = getattr(document.session_context, "request").arguments  # noqa: B009 # not in the stubs
            query = {
                name: values[0].decode("utf-8", "replace") for name, values in arguments.items() if values
            }
            add_explorer(document, runs, query)

        try:
            sockets, self.port = bind_sockets(address, port)
        except OSError as error:
            raise EnsioError(
                f"cannot listen on {address}, port {port}: {error.strerror}; give another --address or --port"
            ) from None
        tornado = BokehTornado(
            {"/": Application(FunctionHandler(make))},
            extra_websocket_origins=_origins(address, self.port, origins),
            auth_provider=_Token(self.token),
            # Sessions are signed: a connection needs a page that this server made.
            sign_sessions=True,
            secret_key=secrets.token_urlsafe(32).encode(),
            use_index=False,
        )
        http = HTTPServer(tornado)
        http.add_sockets(sockets)
        self._server = BaseServer(IOLoop.current(), tornado, http)
        host = f"[{address}]" if ":" in address else address
        self.link = f"http://{host}:{self.port}/?{urlencode({'token': self.token})}"

    def run(self) -> None:
        """Serve until the program is interrupted."""
        self._server.start()
        try:
            self._server.io_loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            self._server.stop()


def _origins(address: str, port: int, further: Sequence[str]) -> list[str]:
    host = f"[{address}]" if ":" in address else address
    names = [host, "localhost"] if address in (LOOPBACK, "::1") else [host]
    return [*(f"{name}:{port}" for name in names), *further]
