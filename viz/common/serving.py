"""What the servers of pages have in common: sockets, who is let in, and what answers say to browsers."""

from __future__ import annotations

import asyncio
import errno
import hmac
import ipaddress
import logging
import re
import secrets
import socket
import traceback
from collections.abc import Awaitable, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode

from bokeh.server.util import bind_sockets
from bokeh.util.logconfig import basicConfig
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.log import app_log
from tornado.web import Application, HTTPError, RequestHandler

from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text

LOOPBACK = ("127.0.0.1", "::1")
"""Addresses that only this machine can reach."""

MOST_STRANGERS = 64
"""Open connections that have not shown that they may read; of more, the oldest is closed."""

_BOUNDS = {"idle_connection_timeout": 30.0, "body_timeout": 10.0, "max_body_size": 1 << 16}
"""Seconds for the headers of a request, or between two, and for the rest of one; bytes of the rest."""

_REFUSED = "open the link that ensio serve printed: it ends in a token"
_OTHER_NAME = "this server is not known by this name: ensio serve has --allow-origin HOST:PORT for it"
_COOKIE = "ensio"
_HOST = re.compile(r"[\w.:\[\]-]+")

_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; "
)
"""Pages load nothing from elsewhere. Bokeh makes functions from the text of its callbacks."""


class OneLine(logging.Formatter):
    """A line for each record: of an exception what it is and where, and not how the server came there."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[2]:
            kind, error, trace = record.exc_info
            last = traceback.extract_tb(trace)[-1]
            text += f": {kind.__name__}: {error} ({last.filename}, line {last.lineno})"
        return sanitize_text(" ".join(text.split()))[:1000]


class Door:
    """The sockets of a server, closed at the end of ``with``, the link to it, and whom it lets in.

    A browser that opens the link gets a cookie and goes on at an address below `base`. Browsers send cookies
    to all ports of a machine, but only to addresses below the path of the cookie, which no one else knows.

    `token`: what a link must carry.
    `link`: what to open in the browser.
    `base`: random path above all pages.
    `origins`, `further`: ``HOST:PORT`` under which browsers reach the server: all, and those that were named.
    `sessions`: what browsers show that have been let in.
    `strangers`: connections that have not been let in.
    """

    def __init__(self, address: str = LOOPBACK[0], port: int = 0, further: Sequence[str] = ()) -> None:
        try:
            self.sockets, self.port = bind_sockets(address, port)
        except OSError as error:
            raise EnsioError(
                f"cannot listen on {address}, port {port}: {error.strerror}; give another --address or --port"
            ) from None
        self.token, self.base = secrets.token_urlsafe(24), f"/{secrets.token_urlsafe(12)}"
        host = f"[{address}]" if ":" in address else address
        self.link = f"http://{host}:{self.port}/?{urlencode({'token': self.token})}"
        names = [host, "localhost"] if address in LOOPBACK else [host]
        self.further = list(further)
        self.origins = [*(f"{name}:{self.port}" for name in names), *further]
        machine = socket.gethostname().lower()
        self._names = {"localhost", machine, machine.partition(".")[0]}
        self._names |= {origin.rpartition(":")[0].lower() or origin.lower() for origin in further}
        self.sessions: list[str] = []
        self.strangers: dict[IOStream, None] = {}

    def __enter__(self) -> Door:
        handler = logging.StreamHandler()
        handler.setFormatter(OneLine())
        basicConfig(handlers=[handler])  # which leaves what a program has set up
        return self

    def __exit__(self, *reason: object) -> None:
        for each in self.sockets:
            each.close()

    def is_name(self, host: str) -> bool:
        """Whether a server of this door may be called so: a name of others may be made to lead here."""
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return host in self._names
        return True

    def begin_session(self) -> str:
        """Return what a browser shows from now on."""
        self.sessions = [*self.sessions[-255:], secrets.token_urlsafe(24)]
        return self.sessions[-1]

    def settings(self) -> dict[str, Any]:
        """Return the settings of an application behind this door."""
        return {"door": self, "log_function": lambda handler: None}  # exceptions have their line


class Guarded(RequestHandler):
    """A handler that answers browsers which have opened the link; with an error, in one sentence."""

    def set_default_headers(self) -> None:
        """Say that the page loads nothing from elsewhere, and is kept, shown and named nowhere else."""
        host = self.request.host if _HOST.fullmatch(self.request.host) else ""
        sockets = f" ws://{host} wss://{host}" if host else ""
        frames = "".join(f" http://{each} https://{each}" for each in self.settings["door"].further)
        policy = f"{_POLICY}connect-src 'self'{sockets}; frame-ancestors 'self'{frames}"
        self.set_header("Content-Security-Policy", policy)
        self.set_header("X-Frame-Options", "SAMEORIGIN")  # for browsers without frame-ancestors
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")

    def prepare(self) -> Awaitable[None] | None:
        """Let the browser in, give it a cookie for its token, or refuse it."""
        door, path = self.settings["door"], self.request.path
        is_inside = path.startswith(f"{door.base}/")
        if not door.is_name(self.request.host_name):
            raise HTTPError(403, reason=_OTHER_NAME)
        if hmac.compare_digest(getattr(self.request, "token", b""), door.token.encode()):
            # The address that stays in the browser has no token: it can be sent on.
            self.set_cookie(
                _COOKIE, door.begin_session(), path=f"{door.base}/", httponly=True, samesite="Lax"
            )
            inside = path if is_inside else f"{door.base}/{path.lstrip('/')}"
            self.redirect(f"{inside}?{self.request.query}" if self.request.query else inside)
            return None
        given = (self.get_cookie(_COOKIE) or "").encode()
        if not (is_inside and any(hmac.compare_digest(given, each.encode()) for each in door.sessions)):
            raise HTTPError(403, reason=_REFUSED)
        door.strangers.pop(getattr(self.request.connection, "stream", None), None)
        return super().prepare()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with one sentence."""
        error = kwargs.get("exc_info", (None, None))[1]
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if isinstance(error, EnsioError):
            self.set_status(404)
        self.finish(f"{sanitize_text(str(error)) if isinstance(error, EnsioError) else self._reason}\n")

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log what is a defect, without the path of the cookie, and nothing that a stranger can repeat."""
        if not isinstance(value, HTTPError | EnsioError):
            path = self.request.path.removeprefix(self.settings["door"].base)
            app_log.error("%s %s", self.request.method, path, exc_info=(typ, value, tb))


class GuardedApplication(Application):
    """An application all handlers of which are `Guarded`, those of Bokeh too. It has `Door.settings`."""

    def get_handler_delegate(
        self, request: HTTPServerRequest, target_class: type[RequestHandler], *more: Any, **kwargs: Any
    ) -> Any:
        """Take the token from the request, so that no log has it, and guard the handler."""
        for token in request.query_arguments.pop("token", []):
            request.token = token  # type: ignore[attr-defined]
            request.arguments.pop("token", None)
            request.query = urlencode(request.query_arguments, doseq=True)
            request.uri = f"{request.path}?{request.query}"
        guarded = _guarded(target_class)  # type: ignore[arg-type] # classes have a hash
        return super().get_handler_delegate(request, guarded, *more, **kwargs)


@cache
def _guarded(handler: type[RequestHandler]) -> type[RequestHandler]:
    return handler if issubclass(handler, Guarded) else type(handler.__name__, (Guarded, handler), {})


class PageServer(HTTPServer):
    """A server with bounds: strangers can neither keep readers out nor fill a log."""

    def initialize(self, application: Any, door: Door) -> None:  # type: ignore[override]
        """Begin to take connections; Tornado calls this in place of ``__init__``."""
        super().initialize(application, **_BOUNDS)  # type: ignore[arg-type]
        self._strangers, self._is_short_of_files = door.strangers, False
        loop = IOLoop.current().asyncio_loop  # type: ignore[attr-defined]
        self._accepting = [loop.create_task(self._accept(each)) for each in door.sockets]

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:
                    if not self._is_short_of_files:
                        app_log.warning("connections wait, because none can be taken: %s", error.strerror)
                    self._is_short_of_files = True
                    self._close_oldest(len(self._strangers) // 2)  # pages open files too
                    await asyncio.sleep(0.5)  # no file can be opened
            else:
                self.handle_stream(IOStream(connection), address)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Take a connection."""
        if len(self._strangers) >= MOST_STRANGERS:
            self._close_oldest(1)
        self._strangers[stream] = None
        super().handle_stream(stream, address)

    def _close_oldest(self, count: int) -> None:
        for stream in list(self._strangers)[:count]:
            del self._strangers[stream]
            stream.close()

    def on_close(self, server_conn: Any) -> None:
        """Forget a connection."""
        self._strangers.pop(server_conn.stream, None)
        super().on_close(server_conn)

    def stop(self) -> None:
        """Take no more connections. The sockets stay open for another server."""
        for task in self._accepting:
            task.cancel()
        super().stop()
