"""What the servers of pages have in common: sockets, the addresses of browsers, and the token of a link."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from bokeh.server.util import bind_sockets

from ensembles.model.errors import EnsioError

LOOPBACK = ("127.0.0.1", "::1")
"""Addresses that only this machine can reach."""

REFUSED = "open the link that ensio serve printed: it ends in a token"


def listen(address: str, port: int) -> tuple[list[Any], int]:
    """Open the sockets of a server.

    Parameters
    ----------
    address : str
    port : int
        0: a free one.

    Returns
    -------
    sockets : list
    port : int

    Raises
    ------
    EnsioError
        The address or the port cannot be used.
    """
    try:
        sockets, port = bind_sockets(address, port)
    except OSError as error:
        raise EnsioError(
            f"cannot listen on {address}, port {port}: {error.strerror}; give another --address or --port"
        ) from None
    return sockets, port


def host_of(address: str) -> str:
    """Return an address as a URL has it.

    Examples
    --------
    >>> from ensembles.viz.serving import host_of
    >>> host_of("127.0.0.1"), host_of("::1")
    ('127.0.0.1', '[::1]')
    """
    return f"[{address}]" if ":" in address else address


class Door:
    """The sockets of a server, and the link to it, which a reader may open before there is anything to serve.

    Parameters
    ----------
    address : str
        Address to listen on.
    port : int
        0: a free one.

    Attributes
    ----------
    address : str
    sockets : list
    port : int
    token : str
        What a link must carry.
    link : str
        What to open in the browser.

    Raises
    ------
    EnsioError
        The address or the port cannot be used.
    """

    def __init__(self, address: str = LOOPBACK[0], port: int = 0) -> None:
        self.address = address
        self.token = secrets.token_urlsafe(24)
        self.sockets, self.port = listen(address, port)
        self.link = f"http://{host_of(address)}:{self.port}/?{urlencode({'token': self.token})}"


def origins(address: str, port: int, further: Sequence[str] = ()) -> list[str]:
    """Return the ``HOST:PORT`` under which browsers may reach a server."""
    host = host_of(address)
    names = [host, "localhost"] if address in LOOPBACK else [host]
    return [*(f"{name}:{port}" for name in names), *further]


def is_token(given: str, token: str) -> bool:
    """Compare tokens in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), token.encode())
