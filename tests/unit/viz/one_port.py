"""A proxy that forwards one port, as an SSH tunnel or a JupyterHub does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def forwarded(port: int) -> Iterator[int]:
    """Forward connections to a port of this machine; yields the port of the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, port), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, port: int) -> None:
    # The server is closed at the end, while it accepts.
    with contextlib.suppress(OSError):
        while True:
            near, _ = server.accept()
            threading.Thread(target=_forward, args=(near, port), daemon=True).start()


def _forward(near: socket.socket, port: int) -> None:
    with near, socket.create_connection(("127.0.0.1", port)) as far:
        back = threading.Thread(target=_copy, args=(far, near), daemon=True)
        back.start()
        _copy(near, far)
        back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
