"""The nodes of a bookie in the metadata, and when it must not start."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookie.errors import WrongDirectory
from bookie.server.registration import BookieIdentity, Registration, check_cookie, encode_cookie, service_info, store_cookie
from metadata.memory import MemoryStore, OneSession
from metadata.sessions import SessionEvent, SessionListener
from ports.clock import RealClock

B1 = BookieIdentity("b1:3181", "b1", 3181, ("/j1", "/j2"), ("/l1", "/l2"), "uuid-1")
WRITABLE, READ_ONLY = "/ledgers/available/b1:3181", "/ledgers/available/readonly/b1:3181"


class LosableSession:
    """`Sessions` whose session the test ends."""

    def __init__(self) -> None:
        self.tell: SessionListener = lambda event: None

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        self.tell = listener
        return lambda: None


def test_a_cookie_is_apaches_byte_for_byte() -> None:
    assert encode_cookie(B1) == (
        b'5\nbookieHost: "b1:3181"\njournalDir: "/j1,/j2"\nledgerDirs: "2\\t/l1\\t/l2"\ninstanceId: "uuid-1"\n'
    )


def test_the_registered_address_of_a_bookie_has_apaches_bytes() -> None:
    found = replace(B1, host="h1")
    assert service_info(found).hex() == "321b0a06626f6f6b696510ed181a026831220a626f6f6b69652d727063"


def test_a_bookie_starts_only_under_the_name_that_its_directories_had() -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        assert not await check_cookie(store, "/ledgers", B1, in_use=False), "a new bookie"
        assert not await check_cookie(store, "/ledgers", B1, in_use=True), "one that was killed between its two stamps"
        with pytest.raises(WrongDirectory, match="holds ledgers"):
            await store_cookie(store, "/ledgers", B1, has_ledgers=True)
        await store_cookie(store, "/ledgers", B1, has_ledgers=False)
        assert await check_cookie(store, "/ledgers", B1, in_use=True)
        with pytest.raises(WrongDirectory, match="was it emptied"):
            await check_cookie(store, "/ledgers", B1, in_use=False)
        for other in (replace(B1, ledger_directories=("/l3",)), replace(B1, instance_id="uuid-2")):
            with pytest.raises(WrongDirectory, match="give it the directories"):
                await check_cookie(store, "/ledgers", other, in_use=True)
        with pytest.raises(WrongDirectory, match="another bookie"):
            await store_cookie(store, "/ledgers", B1, has_ledgers=False)

    asyncio.run(scenario())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  # the registration's own task has no event for the outside
            await asyncio.sleep(0)


def test_a_bookie_is_registered_as_writable_or_read_only_and_gone_after_its_stop() -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        seen: list[str] = []
        store.watch("/ledgers/available", lambda change: seen.append(f"{change.change.value} {change.path}"))
        await store.put(WRITABLE, b"of an earlier session")
        registration = Registration(store, OneSession(), "/ledgers", B1)
        await registration.start("")
        found = await store.get(WRITABLE)
        assert found is not None
        assert found.value == service_info(B1)
        seen.clear()
        registration.state("disk full")
        await until(lambda: f"deleted {WRITABLE}" in seen)
        assert [each for each in seen if "b1" in each] == [f"created {READ_ONLY}", f"deleted {WRITABLE}"]
        registration.state("")
        await until(lambda: f"created {WRITABLE}" in seen)
        await registration.stop()
        await registration.stop()
        assert not await store.exists(WRITABLE)
        assert not await store.exists(READ_ONLY)

    asyncio.run(scenario())


def test_a_lost_session_is_followed_by_another_registration() -> None:
    async def scenario() -> None:
        store, sessions = MemoryStore(RealClock()), LosableSession()
        registration = Registration(store, sessions, "/ledgers", B1)
        await registration.start("")
        await store.delete(WRITABLE)
        made: list[str] = []
        store.watch(WRITABLE, lambda change: made.append(change.change.value))
        sessions.tell(SessionEvent.SESSION_REESTABLISHED)
        await until(lambda: made == ["created"])
        await registration.stop()

    asyncio.run(scenario())
