"""The ledger client across a socket: against a bookie's real server, and against peers that answer wrongly or not at all."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import EntryLost, LedgerUnreadable
from bookkeeper.network import connection as network_connection
from bookkeeper.network import link as network_link
from bookkeeper.network import network_bookie
from bookkeeper.network import start_tls as network_auth
from bookkeeper.network.link import AWAY
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.network.network_bookies import NetworkBookies, address_in, decode_address
from bookkeeper.ports import BookieClient, ExtendedBookie, KnownLac, PolledLac
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore
from ports.clock import RealClock
from ports.network.read_buffer import SharedRoom
from ports.rng import RealRng
from tests.bookie.runs import KEY, entries_of, sealed
from tests.bookie.server.client import Served, served
from tests.simulation.worlds import run as on_loop
from tests.wire.bookie.bookie_samples import answer
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryBatch, EntryRun
from wire.run_parts import cut


class Speaker(asyncio.Protocol):
    """A peer that says one thing, and nothing more."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._said)


VERSIONS = pytest.mark.parametrize("version", [2, 3])


def over_the_network(scenario: Callable[[Served, NetworkBookie], Coroutine[Any, Any, None]], version: int = 2) -> None:
    async def run(at: Served) -> None:
        client = NetworkBookie("b1", "localhost", at.listener.port, SharedRoom(), 5.0, use_version2=version == 2)
        try:
            await scenario(at, client)
        finally:
            await client.close()

    served(run)


async def code_of(work: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> BookieCode:
    with pytest.raises(BookieError) as failed:
        await work
    return failed.value.code


@VERSIONS
def test_a_network_bookie_does_what_a_bookie_in_the_process_does(version: int) -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        assert await code_of(client.last_entry_id(7)) == BookieCode.ENOLEDGER
        runs = [sealed(7, first, count=100) for first in range(0, 1000, 100)]
        order: list[int] = []
        futures = [client.add(run, KEY) for run in runs]
        for index, future in enumerate(futures):
            future.add_done_callback(lambda _, index=index: order.append(index))  # type: ignore[misc]  # a default argument
        await asyncio.gather(*futures)
        assert order == list(range(10))
        assert await client.last_entry_id(7) == await at.bookie.last_entry_id(7) == 999
        found: dict[int, bytes] = {}
        while len(found) < 1000:
            run = await client.read(7, len(found), 1000, 1 << 20)
            assert run.first_entry_id == len(found)
            found |= entries_of(run)
        assert found == {key: value for run in runs for key, value in entries_of(run).items()}
        assert (await client.read(7, 5, 3, 1 << 20)).count == 3
        assert (await client.read(7, 5, 100, 1)).count == 1
        assert await code_of(client.read(7, 1000, 1, 1)) == BookieCode.ENOENTRY
        assert await code_of(client.read(8, 0, 1, 1)) == BookieCode.ENOLEDGER
        assert int.from_bytes((await client.fence(7, KEY))[16:24]) == 899
        assert await code_of(client.add(sealed(7, 1000), KEY)) == BookieCode.EFENCED
        await client.add(sealed(7, 1000), KEY, recovery=True)
        assert await code_of(client.add(sealed(7, 1001), b"\x09" * 20, recovery=True)) == BookieCode.EUA
        assert await client.fence(99, KEY) == b""

    over_the_network(scenario, version)


@VERSIONS
def test_a_read_stops_at_a_gap(version: int) -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        for first in (0, 1, 3):
            await client.add(sealed(7, first), KEY)
        assert (await client.read(7, 0, 10, 1 << 20)).count == 2

    over_the_network(scenario, version)


@VERSIONS
def test_ledgers_are_written_recovered_and_read_over_the_network(version: int) -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        store = MemoryStore(RealClock())
        bookies: dict[str, BookieClient] = {"b1:3181": client}
        settings = BookKeeperSettings(1, 1, 1)
        ledgers = BookKeeper(bookies, store, settings, RealRng())
        await ledgers.initialise()
        writer = await ledgers.create({})
        for _ in range(5):
            room = bytearray(36 + 3)
            room[36:] = b"abc"
            await writer.append(EntryBatch(room, sealed(0, 0, size=3).offsets, 36, 1))
        reader = await ledgers.open(writer.ledger_id)
        assert reader.last_entry_id == 4
        assert bytes((await reader.read(0, 5, 1000)).payload(0)) == b"abc"
        await ledgers.close()

    over_the_network(scenario, version)


@VERSIONS
def test_a_bookie_that_does_not_answer_is_given_up_and_everything_under_way_fails(version: int) -> None:
    async def scenario() -> None:
        silent = await asyncio.get_running_loop().create_server(lambda: Speaker(b""), "localhost", 4000)
        client = NetworkBookie("b1", "localhost", 4000, SharedRoom(), 5.0, use_version2=version == 2)
        began = asyncio.get_running_loop().time()
        add = client.add(sealed(7, 0), KEY)
        asked = asyncio.gather(
            client.read(7, 0, 1, 1),
            client.last_entry_id(7),
            client.fence(8, KEY),
            client.add_deferred(sealed(7, 0), KEY),
            client.force(7),
            client.write_lac(7, 0, KEY, bytes(20)),
            client.read_lac(7),
            client.disk_space(),
            client.list_entries(7),
            return_exceptions=True,
        )
        assert await code_of(add) == AWAY
        assert all(isinstance(each, BookieError) and each.code == AWAY for each in await asked)
        assert asyncio.get_running_loop().time() - began < 10
        await client.close()
        silent.close()
        assert await code_of(client.add(sealed(7, 0), KEY)) == AWAY
        assert await code_of(client.read(7, 0, 1, 1)) == AWAY

    on_loop(lambda _: scenario())


@VERSIONS
def test_a_bookie_that_is_away_has_not_lost_what_it_has(version: int) -> None:
    """Seed 25 of the quorum scenario: an entry was given up as lost because its bookies were restarting."""

    async def scenario(at: Served, client: NetworkBookie) -> None:
        ledgers = BookKeeper({"b1:3181": client}, MemoryStore(RealClock()), BookKeeperSettings(1, 1, 1), RealRng())
        await ledgers.initialise()
        writer = await ledgers.create({})
        await writer.append(EntryBatch(bytearray(40), sealed(0, 0, size=4).offsets, 36, 1))
        reader = await ledgers.open(writer.ledger_id)
        await at.listener.close()
        await asyncio.sleep(1)
        with pytest.raises(LedgerUnreadable) as failure:
            await reader.read(0, 1, 1)
        assert not isinstance(failure.value, EntryLost)
        await ledgers.close()

    over_the_network(scenario, version)


def test_a_read_that_nobody_waits_for_any_more_fails_in_silence() -> None:
    async def scenario() -> None:
        silent = await asyncio.get_running_loop().create_server(lambda: Speaker(b""), "localhost", 4000)
        client = NetworkBookie("b1", "localhost", 4000, SharedRoom(), 5.0)
        asking = [asyncio.ensure_future(client.read(7, 0, 1, 1)), asyncio.ensure_future(client.last_entry_id(7))]
        await asyncio.sleep(1)
        for each in asking:
            each.cancel()
        await asyncio.wait(asking)
        await client.close()
        silent.close()
        await asyncio.sleep(1)

    on_loop(lambda _: scenario())


@VERSIONS
def test_a_bookie_that_is_not_there_fails_at_once_and_is_found_when_it_is(version: int) -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        await client.add(sealed(7, 0), KEY)
        port = at.listener.port
        await at.listener.close()
        await asyncio.sleep(1)
        assert await code_of(client.add(sealed(7, 1), KEY)) == AWAY
        await at.listener.listen(None, port)
        await asyncio.sleep(1)
        await client.add(sealed(7, 1), KEY)

    over_the_network(scenario, version)


def test_a_bookie_that_is_down_is_not_called_at_each_add(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    real = network_auth.connect

    async def counted(*words: Any) -> Any:
        calls.append(asyncio.get_running_loop().time())
        return await real(*words)

    monkeypatch.setattr(network_connection, "connect", counted)

    async def scenario(at: Served, client: NetworkBookie) -> None:
        port = at.listener.port
        await at.listener.close()
        for entry_id in range(1000):
            assert await code_of(client.add(sealed(7, entry_id), KEY)) == AWAY
            await asyncio.sleep(0.01)
        assert 5 <= len(calls) <= 12, "after 0.1 s, 0.2 s ... 2 s of more than ten"
        await at.listener.listen(None, port)
        await asyncio.sleep(2)
        await client.add(sealed(7, 0), KEY)

    over_the_network(scenario)


def test_a_bookie_that_is_closed_while_it_connects_leaves_no_connection() -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        add = client.add(sealed(7, 0), KEY)
        await asyncio.sleep(0)
        await client.close()
        assert await code_of(add) == AWAY
        assert client._entries._link is None
        assert await code_of(client.read(7, 0, 1, 1)) == AWAY

    over_the_network(scenario)


def lac_record(ledger_id: int, last_add_confirmed: int) -> bytes:
    """Record whose digest is for readers: no bookie looks at it."""
    return ledger_id.to_bytes(8) + last_add_confirmed.to_bytes(8, signed=True) + b"good"


@VERSIONS
def test_version_3_only_requests_work_for_a_client_of_either_version(version: int) -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        assert isinstance(client, ExtendedBookie)
        assert await code_of(client.read_lac(7)) == BookieCode.ENOLEDGER
        await client.add(sealed(7, 0, count=3), KEY)
        await client.add_deferred(sealed(7, 3), KEY)
        await client.force(7)
        assert await client.last_entry_id(7) == 3
        known = await client.read_lac(7)
        assert known == KnownLac(b"", entries_of(sealed(7, 3))[3])
        await client.write_lac(7, 3, KEY, lac_record(7, 3))
        assert (await client.read_lac(7)).record == lac_record(7, 3)
        assert await code_of(client.write_lac(7, 3, b"\x09" * 20, lac_record(7, 3))) == BookieCode.EUA
        space = await client.disk_space()
        assert 0 < space.free_bytes <= space.total_bytes
        await client.add(sealed(7, 6, count=2), KEY)
        assert await client.list_entries(7) == [(0, 3), (6, 7)]
        assert await code_of(client.list_entries(8)) == BookieCode.ENOLEDGER

    over_the_network(scenario, version)


def test_a_long_poll_ends_with_the_entry_that_is_confirmed_or_when_its_time_is_over() -> None:
    async def scenario(at: Served, client: NetworkBookie) -> None:
        clock = asyncio.get_running_loop().time
        await client.add(sealed(7, 0, count=2), KEY)
        began = clock()
        assert await client.wait_lac(7, -1, 20_000) == PolledLac(-1, b"")
        assert 20 <= clock() - began < 21, "longer than a request may take that does not wait"
        waiting = asyncio.ensure_future(client.wait_lac(7, -1, 20_000))
        await asyncio.sleep(1)
        await client.write_lac(7, 0, KEY, lac_record(7, 0))
        assert await waiting == PolledLac(0, entries_of(sealed(7, 0, count=2))[0])
        assert clock() - began < 22

    over_the_network(scenario)


@pytest.mark.parametrize(("host", "port"), [("a..b", 3181), ("127.0.0.1", 70_000)])
def test_a_bookie_that_registered_nonsense_as_its_address_fails_at_once(host: str, port: int) -> None:
    async def scenario() -> None:
        client = NetworkBookie("b1", host, port, SharedRoom(), 5.0)
        assert await code_of(asyncio.wait_for(client.add(sealed(1, 0), KEY), 60)) == AWAY
        assert await code_of(client.read(1, 0, 1, 100)) == AWAY
        await client.close()

    asyncio.run(scenario())


@VERSIONS
def test_answers_that_make_no_sense_end_the_connection(version: int) -> None:
    async def scenario() -> None:
        for said in (b"HTTP/1.1 400 Bad Request\r\n\r\n", answer(9, 0, 7, 0), b"\0\0\0\x04\x02\x02\0\0"):
            server = await asyncio.get_running_loop().create_server(partial(Speaker, said), "localhost", 4000)
            client = NetworkBookie("b1", "localhost", 4000, SharedRoom(), 5.0, use_version2=version == 2)
            began = asyncio.get_running_loop().time()
            assert await code_of(client.read(7, 0, 1, 1)) == AWAY
            assert asyncio.get_running_loop().time() - began < 2
            await client.close()
            server.close()

    on_loop(lambda _: scenario())


@VERSIONS
def test_adds_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(network_bookie, "ADD_BYTES_MAX", 1000)

    async def scenario(at: Served, client: NetworkBookie) -> None:
        first = client.add(sealed(7, 0, size=900), KEY)
        assert await code_of(client.add(sealed(7, 1, size=900), KEY)) == BookieCode.ETOOMANYREQUESTS
        await first
        await client.add(sealed(7, 1, size=900), KEY)

    over_the_network(scenario, version)


@VERSIONS
def test_only_so_many_entries_are_sent_before_they_are_answered(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(network_link, "ENTRIES_UNANSWERED_MAX", 10)

    async def scenario(at: Served, client: NetworkBookie) -> None:
        await client.add(sealed(7, 0), KEY)
        sent = [client.add(sealed(7, first, count=3), KEY) for first in range(1, 61, 3)]
        link = client._entries._link
        assert link is not None
        most = 0
        for future in sent:
            most = max(most, link._entries)
            await future
        assert 10 <= most <= 12
        assert await at.bookie.last_entry_id(7) == 60

    over_the_network(scenario, version)


def test_a_cut_to_a_size_keeps_at_least_one_entry() -> None:
    run: EntryRun = sealed(7, 0, count=10, size=64)
    sizes = (0, 99, 100, 199, 200, 1000, 5000)
    assert [cut(run, run.first_entry_id, run.count, size).count for size in sizes] == [1, 1, 1, 1, 2, 10, 10]


def test_bookies_are_those_that_are_registered_and_others_are_found_by_their_name() -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        info = bytes.fromhex("321b0a06626f6f6b696510ed181a026831220a626f6f6b69652d727063")
        await store.put("/ledgers/available/one", info)
        await store.put("/ledgers/available/old:3181", b"")
        await store.put("/ledgers/available/readonly/two", info)
        bookies = NetworkBookies(store)
        await bookies.open()
        assert sorted(bookies) == ["old:3181", "one"]
        assert bookies["one"] is bookies.get("one")
        assert bookies.get("two") is not None
        assert bookies.get("gone:3181") is not None
        assert bookies.get("gone") is None
        await store.delete("/ledgers/available/one")
        async with asyncio.timeout(5):
            while "one" in list(bookies):  # noqa: ASYNC110  # the follower's own task has no event for the outside
                await asyncio.sleep(0)
        await bookies.close()
        assert decode_address("one", info) == ("h1", 3181)
        assert address_in("b1:3181") == ("b1", 3181)

    asyncio.run(scenario())
