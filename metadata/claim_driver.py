"""Claims on a metadata store: performs what the claim machine says. A lock is a claim that does not wait; an election does.

Owns the tasks that talk to the store. Values should name their owner and be its own: two owners with one value take each
other's node.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from metadata.claim import (
    ClaimMachine,
    DeleteOurs,
    Effect,
    Event,
    Failed,
    Given,
    Hold,
    Made,
    Make,
    MakeLater,
    NodeGone,
    SessionChanged,
    Taken,
    TellHold,
    Wanted,
)
from metadata.sessions import Sessions
from metadata.store import MUST_NOT_EXIST, BadVersion, Change, MetadataError, MetadataStore, NoNode, Notification, StoreClosed
from ports.logs import line

_log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
"""Before the store is asked again after it did not answer."""

HoldListener = Callable[[Hold, bytes], None]


class ClaimBusy(MetadataError):
    """Somebody else holds it; `holder` is the value there."""

    def __init__(self, path: str, holder: bytes) -> None:
        super().__init__(f"{path} is held by {holder.decode(errors='replace')}")
        self.holder = holder


class Claim:
    """One ephemeral node. `told` is called at every change of the hold, on the event loop; it must not raise.

    When it is BUSY it is tried again as soon as the node goes. `close` gives it up.
    """

    def __init__(self, store: MetadataStore, sessions: Sessions, path: str, value: bytes, told: HoldListener) -> None:
        self._store, self._path, self._value, self._told = store, path, value, told
        self._machine = ClaimMachine(value)
        self._made_ms = -1
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._changed = asyncio.Event()
        self._ends = [
            sessions.watch_session(lambda event: self._handle(SessionChanged(event))),
            store.watch(path, self._on_notification),
        ]

    @property
    def hold(self) -> Hold:
        return self._machine.hold

    @property
    def holder(self) -> bytes:
        """The holder's value, as far as known; empty without a holder."""
        return self._machine.holder

    def want(self) -> None:
        self._handle(Wanted())

    async def until_decided(self) -> Hold:
        """HELD or BUSY (or FREE, when it was given up meanwhile)."""
        while self._machine.hold is Hold.TAKING:
            await self._changed.wait()
        return self._machine.hold

    async def until_held(self) -> None:
        """Or given up."""
        while self._machine.hold not in (Hold.HELD, Hold.FREE):
            await self._changed.wait()

    async def close(self) -> None:
        """Give it up, and remove the node if it is ours."""
        for end in self._ends:
            end()
        self._handle(Given())
        for task, name in [(task, task.get_name()) for task in self._tasks]:
            if name == "pause":
                task.cancel()
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def _on_notification(self, notification: Notification) -> None:
        if notification.path == self._path and notification.change is Change.DELETED:
            self._handle(NodeGone())

    def _handle(self, event: Event) -> None:
        for effect in self._machine.handle(event):
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Make():
                self._start(self._make(effect), "make")
            case MakeLater():
                self._start(self._make_later(effect), "pause")
            case DeleteOurs():
                self._start(self._delete_ours(), "delete")
            case TellHold():
                self._changed.set()
                self._changed = asyncio.Event()
                self._told(effect.hold, effect.holder)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self._loop.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _make(self, make: Make) -> None:
        try:
            if make.after_delete:
                await self._delete_ours()
            stat = await self._store.put(self._path, self._value, MUST_NOT_EXIST, ephemeral=True)
        except BadVersion:
            await self._look(make.attempt)
        except MetadataError as error:
            self._fail(make.attempt, error)
        else:
            self._made_ms = stat.created_ms
            self._handle(Made(make.attempt))

    async def _look(self, attempt: int) -> None:
        try:
            found = await self._store.get(self._path)
        except MetadataError as error:
            self._fail(attempt, error)
        else:
            is_ours = found is not None and found.value == self._value and found.stat.created_ms == self._made_ms
            self._handle(Taken(attempt, None if found is None else found.value, is_ours))

    def _fail(self, attempt: int, error: MetadataError) -> None:
        if isinstance(error, StoreClosed):
            self._handle(Given())  # nobody will ever answer
            return
        _log.warning(line("claim not made: the metadata store does not answer", path=self._path, reason=error))
        self._handle(Failed(attempt))

    async def _make_later(self, later: MakeLater) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await self._make(Make(later.attempt))

    async def _delete_ours(self) -> None:
        """Delete our node by its version, so that a node that another client made since is left alone."""
        try:
            found = await self._store.get(self._path)
            if found is not None and found.value == self._value:
                await self._store.delete(self._path, found.stat.version)
        except (NoNode, BadVersion) as gone:
            _log.debug(line("claim was removed already", path=self._path, reason=gone))
        except MetadataError as error:
            _log.warning(line("claim not removed: it ends with the session", path=self._path, reason=error))


async def acquire_lock(store: MetadataStore, sessions: Sessions, path: str, value: bytes, lost: Callable[[], None]) -> Claim:
    """A lock that is held now; ClaimBusy when another client has it, StoreClosed. `lost` is called when it may not be ours."""

    def told(hold: Hold, _holder: bytes) -> None:
        if was_held and hold is not Hold.HELD:
            lost()

    was_held = False
    claim = Claim(store, sessions, path, value, told)
    claim.want()
    hold = await claim.until_decided()
    if hold is not Hold.HELD:
        holder = claim.holder
        await claim.close()
        if hold is Hold.FREE:
            raise StoreClosed(f"{path} cannot be claimed: the metadata store is closed")
        raise ClaimBusy(path, holder)
    was_held = True
    return claim
