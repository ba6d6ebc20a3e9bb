"""Mixes of adds across a socket: one promise for all of it, in whatever order and with whatever codes the answers come."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.network.link import AWAY, Add
from bookkeeper.network.link_version2 import Version2Link
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.network.pending_requests import PendingAdds, PendingMix
from ports.network.read_buffer import SharedRoom
from tests.bookie.runs import KEY, entries_of, mixed, sealed
from tests.bookie.server.client import Served, served
from tests.bookkeeper.network.test_link import Writes
from tests.invariants import checked_after_each_step
from tests.wire.bookie.bookie_samples import answer
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.run import EntryMix

checked_machines = checked_after_each_step(PendingAdds, PendingMix)

PLACES = [(1, 5), (2, 0), (1, 6), (3, 9), (4, 4), (2, 1)]


def a_mix(places: list[tuple[int, int]]) -> EntryMix:
    return mixed([sealed(ledger_id, entry_id) for ledger_id, entry_id in places])


def linked(scenario: Callable[[Version2Link], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        link = Version2Link("b1", SharedRoom(), 5.0, lambda: None)
        link.connection_made(Writes())
        try:
            await scenario(link)
        finally:
            link.connection_lost(None)
            await asyncio.sleep(0)

    asyncio.run(run())


def add(link: Version2Link, run: Any) -> "asyncio.Future[None]":
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    link.add(Add(run, KEY, recovery=False, is_deferred=False, future=future))
    return future


def hear(link: Version2Link, data: bytes) -> None:
    room = link.get_buffer(len(data))
    room[: len(data)] = data
    link.buffer_updated(len(data))


def outcome(future: "asyncio.Future[None]") -> object:
    """None, a code, or NotAsOne."""
    error = future.exception()
    return error.code if isinstance(error, BookieError) else None if error is None else type(error)


@settings(deadline=None)
@given(
    order=st.one_of(st.just(list(range(8))), st.permutations(range(8))),
    refused=st.dictionaries(st.integers(0, 7), st.sampled_from([BookieCode.EFENCED, BookieCode.EREADONLY]), max_size=3),
    all_refused=st.booleans(),
    cuts=st.lists(st.integers(1, 28 * 8), max_size=4),
)
def test_each_is_told_what_became_of_all_of_its_own(
    order: list[int], refused: dict[int, BookieCode], all_refused: bool, cuts: list[int]
) -> None:
    """A mix of four entries, a run, a mix of three; answers in any order and in any pieces."""

    async def scenario(link: Version2Link) -> None:
        places = [*PLACES[:4], (1, 7), *PLACES[4:], (1, 8)]
        codes = [BookieCode.EREADONLY if all_refused else refused.get(index, BookieCode.EOK) for index in range(8)]
        adds = [add(link, a_mix(places[:4])), add(link, sealed(1, 7)), add(link, a_mix(places[5:]))]
        said = b"".join(answer(1, codes[index], *places[index]) for index in order)
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(said)], strict=True):
            if start < end:
                hear(link, said[start:end])
        for _ in range(3):
            await asyncio.sleep(0)
        for future, own in zip(adds, (codes[:4], codes[4:5], codes[5:]), strict=True):
            expected = NotAsOne if len(set(own)) > 1 else None if own[0] == BookieCode.EOK else own[0]
            assert outcome(future) == expected
        assert (link._entries, len(link._mixes), list(link._adds)) == (0, 0, [])

    linked(scenario)


def test_a_mix_is_not_done_before_its_last_answer() -> None:
    async def scenario(link: Version2Link) -> None:
        future = add(link, a_mix(PLACES))
        hear(link, b"".join(answer(1, 0, *place) for place in PLACES[:-1]))
        await asyncio.sleep(0)
        assert not future.done()
        hear(link, answer(1, 0, *PLACES[-1]))
        await future

    linked(scenario)


@pytest.mark.parametrize("is_split", [False, True])
def test_a_connection_that_is_lost_ends_its_mixes(is_split: bool) -> None:
    async def scenario(link: Version2Link) -> None:
        future = add(link, a_mix(PLACES))
        if is_split:
            hear(link, answer(1, 0, *PLACES[2]))
        link.end("it was cut")
        for _ in range(3):
            await asyncio.sleep(0)
        assert outcome(future) == AWAY

    linked(scenario)


def test_a_bookie_stores_what_a_mix_has_and_refuses_what_is_fenced() -> None:
    async def scenario(at: Served) -> None:
        client = NetworkBookie("b1", "localhost", at.listener.port, SharedRoom(), 5.0)
        try:
            for _ in range(2):  # the ledgers are new, then they are known
                await client.add_mix(a_mix(PLACES), KEY)
            for ledger_id, entry_id in PLACES:
                found = await at.bookie.read(ledger_id, entry_id, 1, 1 << 20)
                assert entries_of(found) == entries_of(sealed(ledger_id, entry_id))
            await client.fence(3, KEY)
            with pytest.raises(NotAsOne):
                await client.add_mix(a_mix([(1, 10), (3, 10), (2, 10)]), KEY)
            with pytest.raises(BookieError) as refused:
                await client.add_mix(a_mix([(3, 11), (3, 13)]), KEY)
            assert refused.value.code == BookieCode.EFENCED
            await client.add_mix(a_mix([(1, 10), (2, 10)]), KEY)
        finally:
            await client.close()

    served(scenario)


def test_version_3_takes_no_mixes() -> None:
    async def scenario(at: Served) -> None:
        client = NetworkBookie("b1", "localhost", at.listener.port, SharedRoom(), 5.0, use_version2=False)
        assert client.mixing_for(1) is None
        await client.close()

    served(scenario)
