"""What the servers of pages have in common: sockets, the addresses of browsers, and the token of a link."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

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


def origins(address: str, port: int, further: Sequence[str] = ()) -> list[str]:
    """Return the ``HOST:PORT`` under which browsers may reach a server."""
    host = host_of(address)
    names = [host, "localhost"] if address in LOOPBACK else [host]
    return [*(f"{name}:{port}" for name in names), *further]


def is_token(given: str, token: str) -> bool:
    """Compare tokens in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), token.encode())
