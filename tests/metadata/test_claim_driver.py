"""Claims on a store that fails and closes, and whose nodes go: one holder at a time, and nobody waits for ever."""

import asyncio
from collections.abc import Callable

import pytest

from metadata.claim import Hold
from metadata.claim_driver import PAUSE_SECONDS, Claim, ClaimBusy, acquire_lock
from metadata.memory import MemoryStore, OneSession, SharedTree
from metadata.sessions import SessionEvent, SessionListener
from metadata.store import ANY_VERSION, Stat, StoreClosed, StoreUnavailable
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run


class Sessions:
    """A session that is lost and found when a test says so."""

    def __init__(self) -> None:
        self.listeners: list[SessionListener] = []

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, event: SessionEvent) -> None:
        for listener in list(self.listeners):
            listener(event)


class FailingStore(MemoryStore):
    """A store that does not answer its next `failures` writes."""

    failures = 0

    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("no answer")
        return await super().put(path, value, expected_version, ephemeral=ephemeral, sequential=sequential)


def stores(count: int) -> list[FailingStore]:
    shared = SharedTree()
    return [FailingStore(FixedClock(), shared, alone=False) for _ in range(count)]


def test_an_election_passes_to_the_next_one_when_the_holder_gives_it_up() -> None:
    async def scenario(world: World) -> None:
        one, other = stores(2)
        holds: list[tuple[str, Hold]] = []
        first = Claim(one, OneSession(), "/leader", b"one", lambda hold, _: holds.append(("one", hold)))
        second = Claim(other, OneSession(), "/leader", b"other", lambda hold, _: holds.append(("other", hold)))
        first.want()
        await first.until_held()
        second.want()
        assert await second.until_decided() is Hold.BUSY
        assert second.holder == b"one"
        await first.close()
        await second.until_held()
        assert dict(holds) == {"one": Hold.FREE, "other": Hold.HELD}
        await second.close()
        assert not await one.exists("/leader")

    run(scenario)


def test_a_claim_on_a_store_that_does_not_answer_is_made_after_a_pause() -> None:
    async def scenario(world: World) -> None:
        (store,) = stores(1)
        store.failures = 3
        claim = Claim(store, OneSession(), "/leader", b"me", lambda hold, holder: None)
        claim.want()
        await claim.until_held()
        assert world.loop.time() == pytest.approx(3 * PAUSE_SECONDS, abs=0.1)
        await claim.close()

    run(scenario)


def test_a_claim_that_is_given_up_during_the_pause_makes_no_node() -> None:
    async def scenario(world: World) -> None:
        (store,) = stores(1)
        store.failures = 1
        claim = Claim(store, OneSession(), "/leader", b"me", lambda hold, holder: None)
        claim.want()
        await asyncio.sleep(PAUSE_SECONDS / 2)
        await claim.close()
        assert world.loop.time() < PAUSE_SECONDS, "the pause is not waited for"
        await asyncio.sleep(2 * PAUSE_SECONDS)
        assert not await store.exists("/leader")

    run(scenario)


def test_the_node_of_another_is_left_alone_at_the_close() -> None:
    async def scenario(world: World) -> None:
        one, other = stores(2)
        await other.put("/leader", b"other", ephemeral=True)
        claim = Claim(one, OneSession(), "/leader", b"one", lambda hold, holder: None)
        claim.want()
        assert await claim.until_decided() is Hold.BUSY
        await claim.close()
        assert await other.exists("/leader")

    run(scenario)


def test_a_lock_that_is_held_is_refused_with_its_holder() -> None:
    async def scenario(world: World) -> None:
        one, other = stores(2)
        lock = await acquire_lock(one, OneSession(), "/lock", b"one", lambda: None)
        with pytest.raises(ClaimBusy, match="/lock is held by one") as busy:
            await acquire_lock(other, OneSession(), "/lock", b"other", lambda: None)
        assert busy.value.holder == b"one"
        await lock.close()
        await (await acquire_lock(other, OneSession(), "/lock", b"other", lambda: None)).close()

    run(scenario)


def test_a_lock_of_a_closed_store_is_refused_at_once() -> None:
    async def scenario(world: World) -> None:
        (store,) = stores(1)
        await store.close()
        with pytest.raises(StoreClosed, match="/lock cannot be claimed"):
            await acquire_lock(store, OneSession(), "/lock", b"me", lambda: None)

    run(scenario)


def test_the_owner_of_a_lock_hears_of_its_loss_with_the_session_and_not_before_it_was_held() -> None:
    async def scenario(world: World) -> None:
        (store,), sessions, lost = stores(1), Sessions(), list[bool]()
        lock = await acquire_lock(store, sessions, "/lock", b"me", lambda: lost.append(True))
        sessions.tell(SessionEvent.CONNECTION_LOST)
        assert lost == []
        sessions.tell(SessionEvent.SESSION_LOST)
        assert lost == [True]
        await lock.close()
        assert sessions.listeners == []

    run(scenario)
