"""Every request of both versions, over a connection, against a bookie with a disk."""

import asyncio
import struct

from tests.bookie.runs import KEY, sealed
from tests.bookie.server.client import EFENCED, ENOENTRY, ENOLEDGER, EOK, EREADONLY, EUA, Client, Served, served
from tests.wire.bookie.bookie_samples import add, batch_read, entry, frame, read
from wire.bookie.availability import decode_availability
from wire.generated import bookie_protocol_pb2 as api

OTHER_KEY = b"\x02" * 20


def add3(ledger_id: int, entry_id: int, lac: int = -1, *, recovery: bool = False, key: bytes = KEY) -> api.AddRequest:
    request = api.AddRequest(ledgerId=ledger_id, entryId=entry_id, masterKey=key, body=entry(ledger_id, entry_id, lac=lac))
    if recovery:
        request.flag = api.AddRequest.RECOVERY_ADD
    return request


async def filled(client: Client, ledger_id: int, count: int) -> None:
    client.send(b"".join(add(ledger_id, index, b"%d" % index, key=KEY) for index in range(count)))
    for index in range(count):
        assert await client.answer() == (1, EOK, ledger_id, index, b"")


def test_adds_are_answered_in_order_and_read_back_as_they_came() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            await filled(client, 7, 100)
            client.send(b"".join(read(7, index) for index in range(100)))
            for index in range(100):
                assert await client.answer() == (2, EOK, 7, index, entry(7, index, b"%d" % index, index - 1))
            assert await client.ask(read(7, -1)) == (2, EOK, 7, -1, entry(7, 99, b"99", 98))
            assert (await client.ask(read(7, 100))).code == ENOENTRY
            assert (await client.ask(read(8, 0))).code == ENOLEDGER
            assert (await client.ask(read(8, -1))).code == ENOLEDGER

    served(scenario)


def test_adds_that_alternate_among_ledgers_are_answered_each_and_read_back() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            places = [(ledger_id, entry_id) for entry_id in range(30) for ledger_id in (7, 8, 9)]
            client.send(b"".join(add(*place, b"%d-%d" % place, key=KEY) for place in places[:3]))
            assert [await client.answer() for _ in range(3)] == [(1, EOK, *place, b"") for place in places[:3]]
            before = at.machine.disk.steps
            client.send(b"".join(add(*place, b"%d-%d" % place, key=KEY) for place in places[3:]))
            assert [await client.answer() for _ in places[3:]] == [(1, EOK, *place, b"") for place in places[3:]]
            assert at.machine.disk.steps - before < 10, "they share journal frames"
            for ledger_id, entry_id in places:
                found = await client.ask(read(ledger_id, entry_id))
                assert found.body == entry(ledger_id, entry_id, b"%d-%d" % (ledger_id, entry_id), entry_id - 1)

    served(scenario)


def test_only_those_of_alternating_adds_to_a_fenced_ledger_are_refused() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client, at.client() as fencer:
            for ledger_id in (7, 8, 9):
                assert (await client.ask(add(ledger_id, 0, key=KEY))).code == EOK
            large = [add(9, entry_id, b"x" * 50_000, key=KEY) for entry_id in range(1, 30)]
            client.send(b"".join(large))
            alternating = [(ledger_id, entry_id) for entry_id in range(1, 5) for ledger_id in (7, 8)]
            client.send(b"".join(add(*place, key=KEY) for place in alternating))
            assert (await fencer.ask(read(8, -1, flags=1, key=KEY))).code == EOK
            client.send(b"".join(add(ledger_id, 5, key=KEY) for ledger_id in (7, 8)))
            answers = [await client.answer() for _ in range(len(large) + len(alternating) + 2)]
            codes = {(answer.ledger_id, answer.entry_id): answer.code for answer in answers}
            assert all(code == EOK for (ledger_id, _), code in codes.items() if ledger_id != 8)
            assert codes[8, 5] == EFENCED
            assert {codes[8, entry_id] for entry_id in range(1, 5)} <= {EOK, EFENCED}
            for ledger_id, entry_id in alternating:
                code = (await client.ask(read(ledger_id, entry_id))).code
                assert code == (EOK if codes[ledger_id, entry_id] == EOK else ENOENTRY)

    served(scenario)


def test_reads_with_a_gap_answer_each_entry() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            for index in (0, 1, 3):
                assert (await client.ask(add(7, index, key=KEY))).code == EOK
            client.send(b"".join(read(7, index) for index in range(5)))
            assert [(await client.answer()).code for _ in range(5)] == [EOK, EOK, ENOENTRY, EOK, ENOENTRY]
            client.send(b"".join(read(8, index) for index in range(3)))
            assert [(await client.answer())[1:4] for _ in range(3)] == [(ENOLEDGER, 8, index) for index in range(3)]

    served(scenario)


def test_adds_and_fences_acknowledged_over_the_wire_survive_a_power_cut() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            await filled(client, 7, 10)
            assert (await client.ask(read(9, -1, flags=1, key=KEY))).code == ENOENTRY
        at.machine.crash(power_cut=True)
        bookie = await at.machine.start()
        assert (await bookie.read(7, 9, 1, 1)).count == 1
        at.listener.bookie = bookie
        async with at.client() as client:
            assert (await client.ask(add(9, 0, key=KEY))).code == EFENCED, "a fence of an unknown ledger is on disk"

    served(scenario)


def test_a_fencing_read_stops_the_writer_and_not_the_recovery() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as writer, at.client() as recoverer:
            await filled(writer, 7, 3)
            assert (await recoverer.ask(read(7, -1, flags=1, key=OTHER_KEY))).code == EUA
            assert await recoverer.ask(read(7, -1, flags=1, key=KEY)) == (2, EOK, 7, -1, entry(7, 2, b"2", 1))
            assert (await recoverer.ask(read(7, 3, flags=1, key=KEY))).code == ENOENTRY
            writer.send(add(7, 3, key=KEY) + add(7, 4, key=KEY))
            assert [(await writer.answer()).code for _ in range(2)] == [EFENCED, EFENCED]
            assert (await writer.ask(add(7, 3, flags=2, key=KEY))).code == EOK
            assert (await writer.ask(add(7, 4, flags=2, key=OTHER_KEY))).code == EUA

    served(scenario)


def test_each_fencing_read_waits_for_the_fence_to_be_on_disk_and_only_the_first_for_a_write() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            before = at.machine.disk.steps
            assert (await client.ask(read(7, -1, flags=1, key=KEY))).code == ENOENTRY
            first = at.machine.disk.steps
            assert first > before, "ENOENTRY too is said after the fence is on disk"
            for index in range(10):
                assert (await client.ask(read(7, index, flags=1, key=KEY))).code == ENOENTRY
            assert at.machine.disk.steps == first

    served(scenario)


def test_a_batch_read_gives_what_fits_and_at_least_one_entry() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            await filled(client, 7, 10)
            assert (await client.ask(add(7, 12, key=KEY))).code == EOK
            for count, size, expected in ((3, 1 << 20, 3), (0, 1 << 20, 10), (100, 1, 1), (100, 36 + 2 * 37, 2), (1, 0, 1)):
                client.send(batch_read(7, 0, count, size))
                body = await client.frame()
                header, code, ledger_id, first, request_id = struct.unpack_from(">Iiqqq", body)
                assert (header, code, ledger_id, first, request_id) == (0x02070000, EOK, 7, 0, 77)
                assert body[32:] == b"".join(frame(entry(7, index, b"%d" % index, index - 1)) for index in range(expected))
            client.send(batch_read(7, 10, 5, 1 << 20))
            assert struct.unpack_from(">Iiqqq", await client.frame())[1] == ENOENTRY

    served(scenario)


def test_both_versions_share_the_port_and_a_connection_of_version_2_stays_so() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            response = await client.ask3(api.ADD_ENTRY, addRequest=add3(7, 0))
            assert (response.status, response.addResponse.status, response.addResponse.ledgerId) == (api.EOK, api.EOK, 7)
            response = await client.ask3(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=0))
            assert (response.readResponse.body, response.readResponse.maxLAC) == (entry(7, 0), -1)
            assert (await client.ask(read(7, 0))).body == entry(7, 0)
            client.send3(api.READ_ENTRY, readRequest=api.ReadRequest(ledgerId=7, entryId=0))
            assert await client.ended()

    served(scenario)


def test_fencing_and_recovery_in_version_3() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            await client.ask3(api.ADD_ENTRY, addRequest=add3(7, 0))
            fence = api.ReadRequest(ledgerId=7, entryId=-1, masterKey=KEY, flag=api.ReadRequest.FENCE_LEDGER)
            response = await client.ask3(api.READ_ENTRY, readRequest=fence)
            assert (response.readResponse.entryId, response.readResponse.body) == (-1, entry(7, 0))
            assert not response.readResponse.HasField("maxLAC")
            assert (await client.ask3(api.ADD_ENTRY, addRequest=add3(7, 1))).addResponse.status == api.EFENCED
            assert (await client.ask3(api.ADD_ENTRY, addRequest=add3(7, 1, recovery=True))).status == api.EOK
            wrong = add3(7, 2, recovery=True, key=OTHER_KEY)
            assert (await client.ask3(api.ADD_ENTRY, addRequest=wrong)).status == api.EUA

    served(scenario)


def lac_record(ledger_id: int, lac: int) -> api.WriteLacRequest:
    body = ledger_id.to_bytes(8) + lac.to_bytes(8) + b"crc!"
    return api.WriteLacRequest(ledgerId=ledger_id, lac=lac, masterKey=KEY, body=body)


def test_the_last_add_confirmed_is_written_read_and_never_goes_back() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            asked = api.ReadLacRequest(ledgerId=7)
            assert (await client.ask3(api.READ_LAC, readLacRequest=asked)).status == api.ENOLEDGER
            for lac in (4, 3):
                response = await client.ask3(api.WRITE_LAC, writeLacRequest=lac_record(7, lac))
                assert (response.status, response.writeLacResponse.ledgerId) == (api.EOK, 7)
            response = await client.ask3(api.READ_LAC, readLacRequest=asked)
            assert (response.readLacResponse.lacBody, response.status) == (lac_record(7, 4).body, api.EOK)
            assert not response.readLacResponse.HasField("lastEntryBody")
            await client.ask3(api.ADD_ENTRY, addRequest=add3(7, 9, lac=8))
            response = await client.ask3(api.READ_LAC, readLacRequest=asked)
            assert response.readLacResponse.lastEntryBody == entry(7, 9, lac=8)
            other = lac_record(7, 5)
            other.masterKey = OTHER_KEY
            assert (await client.ask3(api.WRITE_LAC, writeLacRequest=other)).status == api.EUA

    served(scenario)


def poll(previous_lac: int, timeout_ms: int) -> api.ReadRequest:
    flag = api.ReadRequest.ENTRY_PIGGYBACK
    return api.ReadRequest(ledgerId=7, entryId=-1, previousLAC=previous_lac, timeOut=timeout_ms, flag=flag)


def test_a_long_poll_ends_with_the_entry_when_it_is_confirmed_and_empty_when_time_is_over() -> None:
    async def scenario(at: Served) -> None:
        loop = asyncio.get_running_loop()
        async with at.client() as reader, at.client() as writer:
            for index in range(3):
                await writer.ask3(api.ADD_ENTRY, addRequest=add3(7, index, lac=index - 1))
            response = await reader.ask3(api.READ_ENTRY, readRequest=poll(0, 10_000))
            assert (response.readResponse.entryId, response.readResponse.maxLAC) == (1, 1)
            began = loop.time()
            response = await reader.ask3(api.READ_ENTRY, readRequest=poll(1, 10_000))
            assert (response.status, response.readResponse.HasField("body"), response.readResponse.maxLAC) == (0, False, 1)
            assert 10 <= loop.time() - began < 11
            began = loop.time()
            reader.send3(api.READ_ENTRY, readRequest=poll(1, 10_000))
            await writer.ask3(api.ADD_ENTRY, addRequest=add3(7, 3, lac=2))
            response = await reader.answer3()
            assert (response.readResponse.body, response.readResponse.maxLAC) == (entry(7, 2, lac=1), 2)
            reader.send3(api.READ_ENTRY, readRequest=poll(2, 10_000))
            await writer.ask3(api.WRITE_LAC, writeLacRequest=lac_record(7, 3))
            assert (await reader.answer3()).readResponse.body == entry(7, 3, lac=2)
            assert loop.time() - began < 1

    served(scenario)


def test_force_list_of_entries_disk_and_authentication() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            for index in (0, 1, 4):
                await client.ask3(api.ADD_ENTRY, addRequest=add3(7, index))
            forced = await client.ask3(api.FORCE_LEDGER, forceLedgerRequest=api.ForceLedgerRequest(ledgerId=7))
            assert (forced.status, forced.forceLedgerResponse.ledgerId) == (api.EOK, 7)
            asked = api.GetListOfEntriesOfLedgerRequest(ledgerId=7)
            for _ in range(2):
                listed = await client.ask3(api.GET_LIST_OF_ENTRIES_OF_LEDGER, getListOfEntriesOfLedgerRequest=asked)
                held = listed.getListOfEntriesOfLedgerResponse.availabilityOfEntriesOfLedger
                assert decode_availability(held) == [(0, 1), (4, 4)]
                await at.bookie.flush()
            info = await client.ask3(api.GET_BOOKIE_INFO, getBookieInfoRequest=api.GetBookieInfoRequest(requested=3))
            usage = await at.bookie.usage()
            described = info.getBookieInfoResponse
            assert (described.totalDiskCapacity, described.freeDiskSpace) == (usage.total_bytes, usage.free_bytes)
            said = await client.ask3(api.AUTH, authRequest=api.AuthMessage(authPluginName="plugin", payload=b"x"))
            assert (said.authResponse.authPluginName, said.authResponse.payload) == ("AuthDisabledPlugin", b"")

    served(scenario)


def test_a_read_only_bookie_says_so_and_is_read() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            await filled(client, 7, 1)
            at.machine.disk.capacity_bytes = 1
            await asyncio.sleep(2 * at.machine.settings.disk_check_interval / 1000)
            assert (await client.ask(add(7, 1, key=KEY))).code == EREADONLY
            assert (await client.ask(read(7, 0))).code == EOK

    served(scenario)


def test_adds_of_the_wire_and_of_the_process_are_of_one_bookie() -> None:
    async def scenario(at: Served) -> None:
        run = sealed(7, 0, count=3)
        await at.bookie.add(run, KEY)
        async with at.client() as client:
            for index in range(3):
                expected = bytes(run.buffer[run.offsets[index] : run.offsets[index + 1]])
                assert await client.ask(read(7, index)) == (2, EOK, 7, index, expected)

    served(scenario)
