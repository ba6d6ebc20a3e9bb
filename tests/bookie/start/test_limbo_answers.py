"""Answers about a ledger in limbo: entries that are here are served, and none is said never to have been."""

import struct

import pytest

from tests.bookie.runs import KEY, entries_of, sealed
from tests.bookie.server.client import EIO, EOK, Client, Served, served
from wire.generated import bookie_protocol_pb2 as api

EUNKNOWN = 107
LAST = -1
FENCING = 1
READ, BATCH_READ = 2, 7


def version_2(opcode: int, entry_id: int, *, fencing: bool) -> bytes:
    body = struct.pack(">Iqq", 2 << 24 | opcode << 16 | (FENCING if fencing else 0), 7, entry_id)
    if opcode == BATCH_READ:
        body += struct.pack(">qiq", 1, 10, 1 << 20)
    body += KEY if fencing else b""
    return len(body).to_bytes(4) + body


def version_3(entry_id: int, *, fencing: bool) -> api.ReadRequest:
    if fencing:
        return api.ReadRequest(ledgerId=7, entryId=entry_id, masterKey=KEY, flag=api.ReadRequest.FENCE_LEDGER)
    return api.ReadRequest(ledgerId=7, entryId=entry_id)


async def in_limbo(world: Served) -> dict[int, bytes]:
    """Entries 0 to 2 and 5 are here."""
    runs = [sealed(7, 0, 3), sealed(7, 5)]
    for run in runs:
        await world.bookie.add(run, KEY)
    await world.bookie.flush()
    world.bookie._ledgers.enter_limbo([7])
    return {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}


@pytest.mark.parametrize("fencing", [False, True])
def test_reads_of_version_2_and_3_find_what_is_here_and_know_nothing_of_the_rest(fencing: bool) -> None:
    async def scenario(world: Served) -> None:
        held = await in_limbo(world)
        async with world.client() as old, world.client() as new:
            for entry_id in range(8):
                code = EOK if entry_id in held else EUNKNOWN
                answer = await old.ask(version_2(READ, entry_id, fencing=fencing))
                assert (answer.code, answer.body) == (code, held.get(entry_id, b""))
                response = await new.ask3(api.READ_ENTRY, readRequest=version_3(entry_id, fencing=fencing))
                expected = api.EOK if entry_id in held else api.EUNKNOWNLEDGERSTATE
                assert (response.status, response.readResponse.body) == (expected, held.get(entry_id, b""))
            assert (await old.ask(version_2(READ, LAST, fencing=fencing))).code == EUNKNOWN
            response = await new.ask3(api.READ_ENTRY, readRequest=version_3(LAST, fencing=fencing))
            assert response.status == api.EUNKNOWNLEDGERSTATE

    served(scenario)


@pytest.mark.parametrize("fencing", [False, True])
def test_a_batch_ends_where_nothing_is_known(fencing: bool) -> None:
    async def scenario(world: Served) -> None:
        held = await in_limbo(world)
        async with world.client() as client:
            answer = await client.ask(version_2(BATCH_READ, 1, fencing=fencing))
            assert answer.code == EOK
            assert answer.body[8:] == b"".join(len(held[entry_id]).to_bytes(4) + held[entry_id] for entry_id in (1, 2))
            assert (await client.ask(version_2(BATCH_READ, 3, fencing=fencing))).code == EUNKNOWN

    served(scenario)


async def asked_for_the_ledger(client: Client) -> list[int]:
    poll = api.ReadRequest(ledgerId=7, entryId=LAST, previousLAC=0, timeOut=10)
    answers = [
        await client.ask3(api.READ_LAC, readLacRequest=api.ReadLacRequest(ledgerId=7)),
        await client.ask3(api.READ_ENTRY, readRequest=poll),
        await client.ask3(
            api.GET_LIST_OF_ENTRIES_OF_LEDGER, getListOfEntriesOfLedgerRequest=api.GetListOfEntriesOfLedgerRequest(ledgerId=7)
        ),
    ]
    return [answer.status for answer in answers]


def test_requests_about_a_whole_ledger_in_limbo_get_unknown() -> None:
    async def scenario(world: Served) -> None:
        await in_limbo(world)
        async with world.client() as client:
            assert await asked_for_the_ledger(client) == [api.EUNKNOWNLEDGERSTATE] * 3

    served(scenario)


def test_an_entry_is_served_when_the_last_one_of_its_ledger_is_damaged() -> None:
    async def scenario(world: Served) -> None:
        await world.bookie.add(sealed(7, 0), KEY)
        await world.bookie.add(sealed(7, 5), KEY)
        await world.bookie.flush()
        span = world.bookie._storage.index.find(7, 5)
        assert span is not None
        world.bookie._storage.distrust(span)
        async with world.client() as client:
            response = await client.ask3(api.READ_ENTRY, readRequest=version_3(0, fencing=False))
            assert (response.status, response.readResponse.body) == (api.EOK, entries_of(sealed(7, 0))[0])
            assert not response.readResponse.HasField("maxLAC")
            assert (await client.ask3(api.READ_ENTRY, readRequest=version_3(5, fencing=False))).status == api.EIO
        async with world.client() as client:
            assert (await client.ask(version_2(READ, 5, fencing=False))).code == EIO

    served(scenario)
