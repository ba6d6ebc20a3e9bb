"""Limit of bytes that a peer publishes before they are stored: at the limit its socket is not read, at half of it again.

One `PublishGate` per connection (messages and bytes), one `PublishMemory` over all of them (maxMessagePublishBufferSizeInMB).
Only receipts, and the time that a rate takes, open a gate: it cannot stay shut (surface section 2, back-pressure). Pure; a
callback notifies the driver.

A message waits for all bytes that came before it, whatever their connection. So a connection that publishes alone may have more
bytes in flight than one beside others.
"""

from collections.abc import Callable

CONNECTION_BYTES_MAX = 8 * 1024 * 1024
"""Bytes in flight on a connection that publishes alone; always passed by at most one read."""
SHARED_BYTES_MAX = 1024 * 1024
"""Same, on a connection beside others that publish."""
ALONE_AFTER_BYTES = 64 * 1024 * 1024
"""Bytes of one connection without a message of another one, after which it publishes alone."""


class PublishMemory:
    """Memory of unstored messages of a whole server."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._waiting: dict[PublishGate, None] = {}
        self._newest: object = None
        """Key of the gate that published last, and the bytes it has published since another one did."""
        self._newest_bytes = 0

    def connection_bytes_max(self) -> int:
        """Most bytes in flight of the connection that published last."""
        return CONNECTION_BYTES_MAX if self._newest_bytes >= ALONE_AFTER_BYTES else SHARED_BYTES_MAX

    def add(self, gate: "PublishGate", size: int) -> bool:
        """Whether the gate has to wait for memory."""
        self._bytes += size
        if self._newest is gate.key:
            self._newest_bytes += size
        else:
            self._newest, self._newest_bytes = gate.key, size
        if self._bytes > self._bytes_max:
            self._waiting[gate] = None
            return True
        return False

    def remove(self, size: int) -> None:
        self._bytes -= size
        if self._waiting and self._bytes <= self._bytes_max // 2:
            waiting, self._waiting = self._waiting, {}
            for gate in waiting:
                gate.memory_freed()


class PublishGate:
    """Gate of one connection. `on_change` gets every change of `is_shut`."""

    def __init__(self, memory: PublishMemory, messages_max: int, on_change: Callable[[], None]) -> None:
        self.key = object()
        self._memory = memory
        self._messages_max = messages_max
        self._on_change = on_change
        self._messages = 0
        self._bytes = 0
        self._bytes_max = SHARED_BYTES_MAX
        """Limit at the last publish."""
        self._is_full = False
        self._waits_for_memory = False
        self._holds = 0
        """Producers that have published more than a rate allows."""

    @property
    def is_shut(self) -> bool:
        return self._is_full or self._waits_for_memory or self._holds > 0

    def hold(self) -> None:
        """Once more: shut until as many `resume`."""
        was_shut, self._holds = self.is_shut, self._holds + 1
        if not was_shut:
            self._on_change()

    def resume(self) -> None:
        self._holds -= 1
        if not self.is_shut:
            self._on_change()

    def began(self, messages: int, size: int) -> None:
        self._messages += messages
        self._bytes += size
        was_shut = self.is_shut
        if self._memory.add(self, size):
            self._waits_for_memory = True
        self._bytes_max = self._memory.connection_bytes_max()
        if self._messages >= self._messages_max or self._bytes >= self._bytes_max:
            self._is_full = True
        if self.is_shut and not was_shut:
            self._on_change()

    def ended(self, messages: int, size: int) -> None:
        self._messages -= messages
        self._bytes -= size
        if self._is_full and 2 * self._messages <= self._messages_max and 2 * self._bytes <= self._bytes_max:
            self._is_full = False
            if not self.is_shut:
                self._on_change()
        self._memory.remove(size)

    def memory_freed(self) -> None:
        self._waits_for_memory = False
        if not self.is_shut:
            self._on_change()
