"""One namespace's `__change_events`, read and followed: the last message of each key.

Owns the reading and, while there is no such topic, the watch on metadata that waits for it. A reading that ends (the topic was
unloaded, or goes to another broker) is begun again; the known documents hold meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from metadata.store import MetadataError, MetadataStore, Notification
from ports.logs import line
from wire.position import Position

from ...errors import BrokerError, ServerError
from ..system_topics.event_log import EventLog
from ..topic_name import NamespaceName
from .topic_policies_events import PolicyEvent, UnreadableEvent, change_events_of, event_of

log = logging.getLogger(__name__)

Key = tuple[str, bool]
"""Topic, and whether the document is that of all clusters."""

Documents = dict[Key, Mapping[str, Any]]

READ_SECONDS_MAX = 30.0
_RETRY_SECONDS_MIN = 0.1
_RETRY_SECONDS_MAX = 10.0
_NOWHERE = Position(-1, -1)


class FollowedNamespace:
    """`documents` are whole once `read` has returned."""

    def __init__(
        self,
        namespace: NamespaceName,
        store: MetadataStore,
        open_log: Callable[[NamespaceName, bool], Awaitable[EventLog | None]],
        changed: Callable[[str], None],
    ) -> None:
        self.documents: Documents = {}
        self._namespace = namespace
        self._store = store
        self._open_log = open_log
        self._changed = changed
        self._log: EventLog | None = None
        self._incoming: Documents | None = None
        """Documents of a reading that has not reached the former end yet: they are not in force."""
        self._seen = _NOWHERE
        self._moved = asyncio.Event()
        self._generation = 0
        self._is_closed = False
        self._is_whole = False
        """Whether the log was read once to its former end, or was absent."""
        self._was_made = False
        """Whether the topic, or something below it, was made or changed while it was looked for."""
        self._work: asyncio.Task[None] | None = None
        self._unwatch: Callable[[], None] | None = None

    async def read(self) -> None:
        """BrokerError when it cannot be read in time."""
        if not self._is_whole:
            await self._wait(lambda: self._is_whole)

    async def read_through(self, position: Position) -> None:
        await self._wait(lambda: self._is_whole and self._log is not None and self._seen >= position)

    def close(self) -> None:
        self._is_closed = True
        self._generation += 1
        if self._work is not None:
            self._work.cancel()
        self._let_go()
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._tell()

    async def _wait(self, is_there: Callable[[], bool]) -> None:
        what = f"The policies of the topics of {self._namespace}"
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                while not is_there():
                    if self._is_closed:
                        raise BrokerError(ServerError.SERVICE_NOT_READY, f"{what} are not followed any more")
                    self._begin()
                    await self._moved.wait()
        except TimeoutError:
            message = f"{what} were not read within {READ_SECONDS_MAX} s: see {change_events_of(self._namespace)}"
            raise BrokerError(ServerError.SERVICE_NOT_READY, message) from None

    def _tell(self) -> None:
        """Wakes all waiting callers."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _begin(self) -> None:
        if self._work is None and self._log is None and not self._is_closed:
            self._work = asyncio.get_running_loop().create_task(self._follow(), name=f"topic policies of {self._namespace}")

    async def _follow(self) -> None:
        """Tries until a reading has begun, or there is nothing to read."""
        pause = _RETRY_SECONDS_MIN
        try:
            while not await self._attempt():
                await asyncio.sleep(pause)
                pause = min(2 * pause, _RETRY_SECONDS_MAX)
        finally:
            self._work = None

    async def _attempt(self) -> bool:
        self._was_made = False
        try:
            self._watch()
            found = await self._open_log(self._namespace, False)
            if found is None:
                self._nothing_there()
                return not self._was_made
            await self._read_from(found)
        except (BrokerError, MetadataError) as error:
            log.warning(line("topic policies cannot be read: tried again", namespace=self._namespace, error=error))
            self._let_go()
            return False
        return True

    def _watch(self) -> None:
        """Called before the look whether the topic is there, so that its creation is not missed."""
        if self._unwatch is None:
            self._unwatch = self._store.watch(
                f"/managed-ledgers/{change_events_of(self._namespace).managed_ledger_name}", self._made
            )

    def _made(self, notification: Notification) -> None:
        self._was_made = True
        if self._log is None:
            self._begin()

    def _nothing_there(self) -> None:
        self._replace({})
        self._is_whole = True
        self._tell()

    async def _read_from(self, found: EventLog) -> None:
        self._log, self._incoming, self._seen = found, {}, _NOWHERE
        self._generation += 1
        generation = self._generation
        end = await found.read(
            lambda position, section: self._on_message(generation, position, section),
            lambda reason: self._on_end(generation, reason),
        )
        while end.entry_id >= 0 and self._seen < end and generation == self._generation:
            await self._moved.wait()
        if generation != self._generation:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "the topic was unloaded while it was read")
        incoming, self._incoming = self._incoming, None
        self._replace(incoming)
        self._is_whole = True
        self._tell()

    def _on_message(self, generation: int, position: Position, section: memoryview) -> None:
        if generation != self._generation:
            return
        try:
            event = event_of(section)
        except UnreadableEvent as error:
            topic = change_events_of(self._namespace)
            log.error(line("an event of topic policies cannot be read: passed over", topic=topic, at=position, error=error))
            event = None
        if event is not None:
            self._take(event)
        self._seen = position
        self._tell()

    def _take(self, event: PolicyEvent) -> None:
        documents, key = self.documents if self._incoming is None else self._incoming, (event.topic, event.is_global)
        if event.document is None:
            documents.pop(key, None)
        else:
            documents[key] = event.document
        if self._incoming is None:
            self._changed(event.topic)

    def _replace(self, documents: Documents | None) -> None:
        before, self.documents = self.documents, documents or {}
        differing = {
            topic: None
            for topic, is_global in [*before, *self.documents]
            if before.get((topic, is_global)) != self.documents.get((topic, is_global))
        }
        for topic in differing:
            self._changed(topic)

    def _on_end(self, generation: int, reason: str) -> None:
        if generation != self._generation:
            return
        log.debug(line("a reading of topic policies ended", namespace=self._namespace, reason=reason))
        self._generation += 1
        self._log = None
        self._tell()
        self._begin()

    def _let_go(self) -> None:
        found, self._log = self._log, None
        self._generation += 1
        if found is not None:
            found.close()
