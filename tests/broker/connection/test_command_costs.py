"""Each command of a client costs time linear in its bytes.

The table writes itself from the protocol's descriptors: for each command that a client may send, each field that can be long
(text, bytes, repeated fields, also inside of other messages) once with n of it and once with 8 n, and n and 8 n of the whole
command in one read. So a new command or a new field has its rows. Topics are fakes here: tests beside the topics count their
steps (tests/broker/topic/test_acknowledging_costs.py and others).
"""

from collections.abc import Callable

import pytest

from broker.connection import replies
from broker.connection.routes import ROUTES
from tests.broker.connection.long_commands import N, one_command, repeated_message, rows
from tests.broker.connection.peer import Peer, a_peer, play_for_real, settle
from tests.cost import Counter
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

BOUND = 9.0
"""Times the steps for 8 times the input; what is above 8 is the logarithm of sorting."""
OWN = {BaseCommand.CONNECT, BaseCommand.PING, BaseCommand.PONG, BaseCommand.AUTH_RESPONSE}
"""Commands that the connection handles by itself."""
SERVERS = {
    *("CONNECTED", "SEND_RECEIPT", "SEND_ERROR", "MESSAGE", "SUCCESS", "ERROR", "PRODUCER_SUCCESS", "REACHED_END_OF_TOPIC"),
    *("PARTITIONED_METADATA_RESPONSE", "LOOKUP_RESPONSE", "CONSUMER_STATS_RESPONSE", "GET_LAST_MESSAGE_ID_RESPONSE"),
    *("ACTIVE_CONSUMER_CHANGE", "GET_TOPICS_OF_NAMESPACE_RESPONSE", "GET_SCHEMA_RESPONSE", "AUTH_CHALLENGE", "ACK_RESPONSE"),
    *("GET_OR_CREATE_SCHEMA_RESPONSE", "NEW_TXN_RESPONSE", "ADD_PARTITION_TO_TXN_RESPONSE", "END_TXN_RESPONSE"),
    *("ADD_SUBSCRIPTION_TO_TXN_RESPONSE", "END_TXN_ON_PARTITION_RESPONSE", "END_TXN_ON_SUBSCRIPTION_RESPONSE"),
    *("TC_CLIENT_CONNECT_RESPONSE", "WATCH_TOPIC_LIST_SUCCESS", "WATCH_TOPIC_UPDATE", "TOPIC_MIGRATED"),
}
"""Commands that a broker sends: one from a client ends its connection."""
CLIENTS = sorted({*ROUTES, *OWN})


def _cost(kind: int, data: bytes) -> int:
    """The cost on a connection with one producer and one consumer."""
    found = [0]

    async def scenario() -> None:
        async with a_peer(version=-1 if kind == BaseCommand.CONNECT else 21) as peer:
            if kind != BaseCommand.CONNECT:
                await peer.produce()
                await peer.consume(sub_type=api.CommandSubscribe.Shared)
            with Counter() as counter:
                peer.feed(data)
                await _done(peer)
            found[0] = counter.steps

    play_for_real(scenario)
    return found[0]


async def _done(peer: Peer) -> None:
    while peer.connection._rest.is_behind:
        await settle()
    await settle()


def test_each_command_of_the_protocol_is_a_clients_or_a_brokers() -> None:
    assert {BaseCommand.Type.Name(kind) for kind in CLIENTS} | SERVERS == set(BaseCommand.Type.keys())
    assert not {BaseCommand.Type.Name(kind) for kind in CLIENTS} & SERVERS


@pytest.mark.parametrize(("kind", "data", "n"), list(rows(CLIENTS)))
def test_a_command_costs_time_linear_in_its_bytes(kind: int, data: Callable[[int], bytes], n: int) -> None:
    small, large = _cost(kind, data(n)), _cost(kind, data(8 * n))
    assert large <= BOUND * small, f"{large / small:.1f} times: {small} steps for {n}, {large} for {8 * n}"


def test_a_planted_quadratic_loop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[api.MessageIdData] = []

    def planted(message_id: api.MessageIdData) -> Position:
        if message_id.entry_id not in [each.entry_id for each in seen]:
            seen.append(message_id)
        return Position(message_id.ledger_id, message_id.entry_id)

    monkeypatch.setattr(replies, "position_of", planted)
    kind, fill = int(BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES), repeated_message("message_ids")
    small = _cost(kind, one_command(kind, fill, N))
    seen.clear()
    assert _cost(kind, one_command(kind, fill, 8 * N)) > 2 * BOUND * small
