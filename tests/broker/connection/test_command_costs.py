"""Whatever a client puts into a command costs time linear in its bytes.

The table writes itself from the protocol's descriptors: for each command that a client may send, each field that can be long
(text, bytes, whatever is repeated, also inside of other messages) once with n of it and once with 8 n, and n and 8 n of the
whole command in one read. So a new command or a new field has its rows. What the topics behind do with it is looked at beside
them (tests/broker/topic/test_acknowledging_costs.py and others): here they are fakes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from broker.connection import replies
from broker.connection.connection import _ROUTES
from tests.broker.connection.peer import TOPIC, Peer, a_peer, message, play_for_real, settle
from tests.cost import Counter
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

BOUND = 9.0
"""Times the steps for 8 times the input; what is above 8 is the logarithm of sorting."""
N = 120
"""Elements of a field; of a text forty times as many characters."""
COMMANDS = 25
OWN = {BaseCommand.CONNECT, BaseCommand.PING, BaseCommand.PONG, BaseCommand.AUTH_RESPONSE}
"""What the connection answers by itself."""
TEXTS = {"topic": TOPIC, "namespace": "public/default", "subscription": "s", "topics_pattern": ".*", "partitions": TOPIC}
SERVERS = {
    *("CONNECTED", "SEND_RECEIPT", "SEND_ERROR", "MESSAGE", "SUCCESS", "ERROR", "PRODUCER_SUCCESS", "REACHED_END_OF_TOPIC"),
    *("PARTITIONED_METADATA_RESPONSE", "LOOKUP_RESPONSE", "CONSUMER_STATS_RESPONSE", "GET_LAST_MESSAGE_ID_RESPONSE"),
    *("ACTIVE_CONSUMER_CHANGE", "GET_TOPICS_OF_NAMESPACE_RESPONSE", "GET_SCHEMA_RESPONSE", "AUTH_CHALLENGE", "ACK_RESPONSE"),
    *("GET_OR_CREATE_SCHEMA_RESPONSE", "NEW_TXN_RESPONSE", "ADD_PARTITION_TO_TXN_RESPONSE", "END_TXN_RESPONSE"),
    *("ADD_SUBSCRIPTION_TO_TXN_RESPONSE", "END_TXN_ON_PARTITION_RESPONSE", "END_TXN_ON_SUBSCRIPTION_RESPONSE"),
    *("TC_CLIENT_CONNECT_RESPONSE", "WATCH_TOPIC_LIST_SUCCESS", "WATCH_TOPIC_UPDATE", "TOPIC_MIGRATED"),
}
"""What a broker sends, which ends the connection when a client does."""
CLIENTS = sorted({*_ROUTES, *OWN})

Fill = Callable[[Message, int], None]


def _body(command: BaseCommand) -> Any:
    name = next(field.name for field in BaseCommand.DESCRIPTOR.fields if field.number == command.type)
    return getattr(command, name)


def _minimal(body: Any, number: int = 0) -> None:
    """The required fields, and the fields of TEXTS; `number` tells one message from another."""
    for field in body.DESCRIPTOR.fields:
        if field.name in TEXTS and field.type == field.TYPE_STRING and not field.is_repeated:
            setattr(body, field.name, TEXTS[field.name])
        elif not field.is_required:
            continue
        elif field.type == field.TYPE_MESSAGE:
            _minimal(getattr(body, field.name), number)
        elif field.type == field.TYPE_STRING:
            setattr(body, field.name, f"{field.name}{number}")
        elif field.type == field.TYPE_BYTES:
            setattr(body, field.name, b"x")
        elif field.type == field.TYPE_ENUM:
            setattr(body, field.name, field.enum_type.values[0].number)
        elif field.type != field.TYPE_BOOL:
            setattr(body, field.name, 1 if field.name in ("producer_id", "consumer_id", "message_permits") else number)
        else:
            setattr(body, field.name, False)


def _fills(descriptor: Descriptor, path: str = "", above: tuple[Descriptor, ...] = ()) -> Iterator[tuple[str, Fill]]:
    """Each field that can be long, and how it gets n of what it holds."""
    for field in descriptor.fields:
        if field.type == field.TYPE_MESSAGE and field.message_type not in above:
            if field.is_repeated:
                yield path + field.name, _repeated_message(field.name)
            inner: Any = field.message_type
            for name, fill in _fills(inner, f"{path}{field.name}.", (*above, descriptor)):
                yield name, _inside(field, fill)
        elif field.is_repeated and field.type != field.TYPE_MESSAGE:
            yield path + field.name, _repeated_value(field)
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            yield path + field.name, _long(field)


def _inside(field: FieldDescriptor, fill: Fill) -> Fill:
    def filled(body: Any, n: int) -> None:
        inner = getattr(body, field.name)
        inner = inner.add() if field.is_repeated else inner
        inner.SetInParent()
        _minimal(inner)
        fill(inner, n)

    return filled


def _repeated_message(name: str) -> Fill:
    def filled(body: Any, n: int) -> None:
        for number in range(n):
            _minimal(getattr(body, name).add(), number)

    return filled


def _repeated_value(field: FieldDescriptor) -> Fill:
    def filled(body: Any, n: int) -> None:
        values: list[Any] = [f"{TEXTS.get(field.name, '')}{number}" for number in range(n)]
        getattr(body, field.name).extend(values if field.type == field.TYPE_STRING else range(1, n + 1))

    return filled


def _long(field: FieldDescriptor) -> Fill:
    def filled(body: Any, n: int) -> None:
        text = TEXTS.get(field.name, "") + "x" * (40 * n)
        setattr(body, field.name, text if field.type == field.TYPE_STRING else text.encode())

    return filled


def _one_command(kind: int, fill: Fill, n: int) -> bytes:
    command = BaseCommand(type=BaseCommand.Type.Name(kind))
    body = _body(command)
    body.SetInParent()
    _minimal(body)
    fill(body, n)
    return _framed(command)


def _many_commands(kind: int, n: int, *, other_ids: bool) -> bytes:
    frames = []
    for number in range(n):
        command = BaseCommand(type=BaseCommand.Type.Name(kind))
        body = _body(command)
        body.SetInParent()
        _minimal(body, number)
        for name in ("producer_id", "consumer_id", "watcher_id"):
            if other_ids and name in body.DESCRIPTOR.fields_by_name:
                setattr(body, name, 10 + number)
        frames.append(_framed(command))
    return b"".join(frames)


def _framed(command: BaseCommand) -> bytes:
    return encode(command, message() if command.type == BaseCommand.SEND else b"")


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


def _rows() -> Iterator[Any]:
    for kind in CLIENTS:
        name = BaseCommand.Type.Name(kind)
        body = _body(BaseCommand(type=name))
        for field, fill in _fills(body.DESCRIPTOR):
            yield pytest.param(kind, partial(_one_command, kind, fill), N, id=f"{name}-{field}")
        for other_ids in (False, True):
            yield pytest.param(
                kind,
                partial(_many_commands, kind, other_ids=other_ids),
                COMMANDS,
                id=f"{name}-many{'-ids' if other_ids else ''}",
            )


def test_each_command_of_the_protocol_is_a_clients_or_a_brokers() -> None:
    assert {BaseCommand.Type.Name(kind) for kind in CLIENTS} | SERVERS == set(BaseCommand.Type.keys())
    assert not {BaseCommand.Type.Name(kind) for kind in CLIENTS} & SERVERS


@pytest.mark.parametrize(("kind", "data", "n"), list(_rows()))
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
    kind, fill = int(BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES), _repeated_message("message_ids")
    small = _cost(kind, _one_command(kind, fill, N))
    seen.clear()
    assert _cost(kind, _one_command(kind, fill, 8 * N)) > 2 * BOUND * small
