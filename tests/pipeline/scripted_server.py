"""Base of scripted servers: a socket on this machine, a thread that takes connections, an end that leaves none."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class ScriptedServer:
    """Serves from `with` on. Connections one after the other, unless `_accepted` does it otherwise; `_talk` is what is said."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._connected: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._serve)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for each in (self._listener, *self._connected):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # the test is over
            self._connected.append(connection)
            self._accepted(connection)

    def _accepted(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        raise NotImplementedError
