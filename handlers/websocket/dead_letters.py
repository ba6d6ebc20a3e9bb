"""DeadLetters: the producer of a consumer's dead letter topic: a session of its own, made with the first letter.

Letters wait while it is being made; permits bound their number. A letter that is not stored is reported so: its message
comes again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from ports.logs import line

from .client import Client
from .errors import Refused

log = logging.getLogger(__name__)


class Producing(Protocol):
    """Session of a producer."""

    async def open(self) -> None:
        """Refused."""

    def on_text(self, text: bytes) -> None: ...
    def close(self) -> None: ...


class Reports(Protocol):
    """Receiver of the outcome of each letter, by its context."""

    def __call__(self, context: str, *, is_stored: bool) -> None: ...


class DeadLetters:
    """Letters of one session. Satisfies `Client` for the producer's session."""

    def __init__(self, make: Callable[[Client], Producing], report: Reports) -> None:
        self._make, self._report = make, report
        self._waiting: list[str] = []
        self._session: Producing | None = None
        self._opening: asyncio.Task[None] | None = None

    def publish(self, text: str) -> None:
        if self._session is not None:
            self._session.on_text(text.encode())
            return
        self._waiting.append(text)
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open(), name="dead letters")

    async def _open(self) -> None:
        session = self._make(self)
        try:
            await session.open()
            self._session = session
        except Refused as refused:
            log.warning(line("dead letters cannot be published", reason=str(refused)[:300]))
            session.close()
        waiting, self._waiting, self._opening = self._waiting, [], None
        for text in waiting:
            if self._session is not None:
                self._session.on_text(text.encode())
            else:
                self._report(_members(text)["context"], is_stored=False)

    def tell(self, text: str) -> None:
        answer = _members(text)
        self._report(answer.get("context", ""), is_stored=answer["result"] == "ok")

    def end(self, code: int, reason: str) -> None:
        """The producer is gone: the next letter makes another one."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def reading_changed(self) -> None:
        """Nothing waits for it: the broker's permits bound the letters."""

    def close(self) -> None:
        """Closing twice is fine."""
        if self._opening is not None:
            self._opening.cancel()
        self.end(0, "")


def _members(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
