"""Each request of a client costs a bookie time linear in its bytes, in both versions of the protocol.

Each operation of both versions has a row: n and 8 n requests in one read, to one ledger and to a ledger each; and requests with
one long field. An operation that is new in the protocol fails until it has a row.
"""

import asyncio
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bookie.server.connection import BookieConnection
from bookie.server.settings import BookieServerSettings
from ports.network.rest import FRAMES_PER_TURN
from tests.bookie.server.client import Served, served
from tests.broker.connection.peer import FakeTransport, settle
from tests.cost import Counter
from tests.wire.bookie.bookie_samples import KEY, add, batch_read, entry, frame, read
from wire.bookie import version2
from wire.generated import bookie_protocol_pb2 as api

BOUND = 9.0
N = 30
STEPS_PER_TURN = 300_000
"""Some 5 milliseconds of bytecodes."""
VERSION_2: dict[int, Callable[[int, int], bytes]] = {
    version2.ADD_ENTRY: lambda ledger_id, entry_id: add(ledger_id, entry_id),
    version2.READ_ENTRY: lambda ledger_id, entry_id: read(ledger_id, entry_id),
    version2.AUTH: lambda ledger_id, entry_id: frame(
        struct.pack(">I", 2 << 24 | 3 << 16) + api.AuthMessage(authPluginName="x", payload=b"x").SerializeToString()
    ),
    version2.BATCH_READ_ENTRY: lambda ledger_id, entry_id: batch_read(ledger_id, entry_id, 1, 1000),
}
VERSION_3: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "READ_ENTRY": lambda ledger_id, entry_id: {"readRequest": api.ReadRequest(ledgerId=ledger_id, entryId=entry_id)},
    "ADD_ENTRY": lambda ledger_id, entry_id: {
        "addRequest": api.AddRequest(ledgerId=ledger_id, entryId=entry_id, masterKey=KEY, body=entry(ledger_id, entry_id))
    },
    "AUTH": lambda ledger_id, entry_id: {"authRequest": api.AuthMessage(authPluginName="x", payload=b"x")},
    "WRITE_LAC": lambda ledger_id, entry_id: {
        "writeLacRequest": api.WriteLacRequest(ledgerId=ledger_id, lac=entry_id, masterKey=KEY, body=entry(ledger_id, -1, b""))
    },
    "READ_LAC": lambda ledger_id, entry_id: {"readLacRequest": api.ReadLacRequest(ledgerId=ledger_id)},
    "GET_BOOKIE_INFO": lambda ledger_id, entry_id: {"getBookieInfoRequest": api.GetBookieInfoRequest(requested=3)},
    "START_TLS": lambda ledger_id, entry_id: {"startTLSRequest": api.StartTLSRequest()},
    "FORCE_LEDGER": lambda ledger_id, entry_id: {"forceLedgerRequest": api.ForceLedgerRequest(ledgerId=ledger_id)},
    "GET_LIST_OF_ENTRIES_OF_LEDGER": lambda ledger_id, entry_id: {
        "getListOfEntriesOfLedgerRequest": api.GetListOfEntriesOfLedgerRequest(ledgerId=ledger_id)
    },
    "RANGE_READ_ENTRY": lambda ledger_id, entry_id: {},
    "RANGE_ADD_ENTRY": lambda ledger_id, entry_id: {},
    "BATCH_READ_ENTRY": lambda ledger_id, entry_id: {"readRequest": api.ReadRequest(ledgerId=ledger_id, entryId=entry_id)},
}


def _in_version_3(operation: str, ledger_id: int, entry_id: int, contexts: int = 0) -> bytes:
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=operation, txnId=entry_id)
    request = api.Request(header=header, **VERSION_3[operation](ledger_id, entry_id))
    for number in range(contexts):
        request.requestContext.add(key=f"key{number}", value=f"value{number}")
    return frame(request.SerializeToString())


def _to_one_ledger(made: Callable[[int, int], bytes], n: int) -> bytes:
    return b"".join(made(7, number) for number in range(n))


def _to_a_ledger_each(made: Callable[[int, int], bytes], n: int) -> bytes:
    return b"".join(made(10 + number, 0) for number in range(n))


def _to_two_ledgers_in_turns(made: Callable[[int, int], bytes], n: int) -> bytes:
    return b"".join(made(7 + number % 2, number // 2) for number in range(n))


def _cost(data: bytes) -> int:
    found = [0]

    async def scenario(at: Served) -> None:
        connection, transport = _connected(at)
        with Counter() as counter:
            _feed(connection, transport, data)
            await asyncio.sleep(5)
        found[0] = counter.steps
        transport.close()
        await asyncio.sleep(0)

    served(scenario, BookieServerSettings())
    return found[0]


def _feed(connection: Any, transport: Any, data: bytes) -> None:
    while data and not transport.closed:
        room = connection.get_buffer(-1)
        size = min(len(data), len(room))
        room[:size] = data[:size]
        data = data[size:]
        connection.buffer_updated(size)


def test_every_operation_of_the_protocol_has_a_row() -> None:
    assert set(VERSION_3) == set(api.OperationType.keys())
    opcodes = {version2.ADD_ENTRY, version2.READ_ENTRY, version2.AUTH, version2.BATCH_READ_ENTRY}
    assert set(VERSION_2) == opcodes


@pytest.mark.parametrize("asked", [_to_one_ledger, _to_a_ledger_each, _to_two_ledgers_in_turns])
@pytest.mark.parametrize("operation", VERSION_2)
def test_requests_of_version_2_cost_time_linear_in_their_number(operation: int, asked: Callable[..., bytes]) -> None:
    _check(lambda n: asked(VERSION_2[operation], n))


@pytest.mark.parametrize("asked", [_to_one_ledger, _to_a_ledger_each, _to_two_ledgers_in_turns])
@pytest.mark.parametrize("operation", VERSION_3)
def test_requests_of_version_3_cost_time_linear_in_their_number(operation: str, asked: Callable[..., bytes]) -> None:
    def made(ledger_id: int, entry_id: int) -> bytes:
        return _in_version_3(operation, ledger_id, entry_id)

    _check(lambda n: asked(made, n))


@pytest.mark.parametrize("operation", VERSION_3)
def test_a_request_costs_time_linear_in_what_it_says_of_its_caller(operation: str) -> None:
    _check(lambda n: _in_version_3(operation, 7, 0, contexts=20 * n))


def test_an_add_costs_time_linear_in_its_entry() -> None:
    _check(lambda n: add(7, 0, b"x" * (1000 * n)))


MANY: dict[str, Callable[[int], bytes]] = {
    "greetings of version 2": partial(_to_one_ledger, VERSION_2[version2.AUTH]),
    "batch reads": partial(_to_a_ledger_each, VERSION_2[version2.BATCH_READ_ENTRY]),
    "greetings of version 3": partial(_to_one_ledger, partial(_in_version_3, "AUTH")),
    "requests that are refused": partial(_to_one_ledger, partial(_in_version_3, "RANGE_ADD_ENTRY")),
    "questions": partial(_to_a_ledger_each, partial(_in_version_3, "READ_LAC")),
}


@pytest.mark.parametrize("what", MANY)
def test_a_turn_of_the_loop_handles_a_bounded_part_of_what_a_client_sends(what: str) -> None:
    async def scenario(at: Served) -> None:
        connection, transport = _connected(at)
        with Counter() as counter:
            _feed(connection, transport, MANY[what](900))
            assert transport.is_paused(), "nothing is read until all is handled"
            await _caught_up(connection)
        assert not transport.is_paused()
        assert counter.longest < STEPS_PER_TURN, f"of {counter.steps} in all"
        transport.close()
        await asyncio.sleep(0)

    served(scenario, BookieServerSettings())


@pytest.mark.parametrize("requests", [FRAMES_PER_TURN - 1, FRAMES_PER_TURN, FRAMES_PER_TURN + 1, 3 * FRAMES_PER_TURN])
def test_requests_that_are_put_off_are_handled_in_their_order(requests: int) -> None:
    async def scenario(at: Served) -> None:
        connection, transport = _connected(at)
        sent = b"".join(_in_version_3("RANGE_ADD_ENTRY", 7, number) for number in range(requests))
        _feed(connection, transport, sent[:-5])
        await _caught_up(connection)
        _feed(connection, transport, sent[-5:])
        await asyncio.sleep(1)
        assert _answered(bytes(transport.written)) == list(range(requests))
        transport.close()
        await asyncio.sleep(0)

    served(scenario, BookieServerSettings())


def test_a_client_that_goes_leaves_what_was_put_off() -> None:
    async def scenario(at: Served) -> None:
        connection, transport = _connected(at)
        _feed(connection, transport, MANY["questions"](4 * FRAMES_PER_TURN))
        connection.end("of the test")
        await asyncio.sleep(1)
        assert not connection._rest.is_behind
        assert len(_answered(bytes(transport.written))) <= FRAMES_PER_TURN

    served(scenario, BookieServerSettings())


def _connected(at: Served) -> tuple[Any, Any]:
    transport: Any = FakeTransport()
    connection: Any = BookieConnection(at.listener)
    transport.protocol = connection
    connection.connection_made(transport)
    return connection, transport


async def _caught_up(connection: Any) -> None:
    while connection._rest.is_behind:
        await settle()


def _answered(written: bytes) -> list[int]:
    """The numbers of the requests, in the order of their answers."""
    found, at = [], 0
    while at < len(written):
        end = at + 4 + int.from_bytes(written[at : at + 4])
        found.append(api.Response.FromString(written[at + 4 : end]).header.txnId)
        at = end
    return found


def _check(data: Callable[[int], bytes]) -> None:
    small, large = _cost(data(N)), _cost(data(8 * N))
    assert large <= BOUND * small, f"{large / small:.1f} times: {small} steps for {N}, {large} for {8 * N}"
