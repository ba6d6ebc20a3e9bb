"""Conversations for each type of command that a client may send: the commands before it on its connection, and itself.

Whether those before it are allowed is part of it: what comes after a refused SUBSCRIBE is asked all the same. `letter` says
what became of the last command.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.broker.connection.peer import message, producer, subscribe
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnId

from .commands import AUTHORIZATION_ERROR, commands

UNASKED = frozenset({BaseCommand.MESSAGE, BaseCommand.ACTIVE_CONSUMER_CHANGE, BaseCommand.PING, BaseCommand.WATCH_TOPIC_UPDATE})
"""Commands that a broker sends of itself, which are no answers."""
_BODIES = {field.number: field.name for field in BaseCommand.DESCRIPTOR.fields if field.number > 1}
OWN = "of one's own"
OTHERS = "of another's transaction"


@dataclass(frozen=True, slots=True)
class World:
    """Names that the commands use. `txn_id` was opened by the super-user."""

    topic: str
    subscription: str
    txn_id: TxnId
    credentials: bytes
    """The caller's token."""


Said = Sequence[BaseCommand]
Step = Callable[[World, Said], bytes]
"""The bytes of one command; it may be about what was answered before."""


def command(name: str, **fields: Any) -> BaseCommand:
    kind = BaseCommand.Type.Value(name)
    return BaseCommand(type=name, **{_BODIES[kind]: fields})


def _plain(name: str, **fields: Any) -> Step:
    return lambda _, __: encode(command(name, **fields))


_PRODUCER: Step = lambda world, _: encode(producer(1, world.topic))  # noqa: E731  # a table of short functions
_SUBSCRIBE: Step = lambda world, _: encode(  # noqa: E731
    subscribe(1, world.topic, subscription="for-all", sub_type=api.CommandSubscribe.Shared)
)
_WATCH: Step = lambda world, _: encode(commands(world.topic, world.subscription)["WATCH_TOPIC_LIST"])  # noqa: E731
_COORDINATOR = _plain("TC_CLIENT_CONNECT_REQUEST", request_id=30, tc_id=0)
_NEW = _plain("NEW_TXN", request_id=31, tc_id=0, txn_ttl_seconds=60_000)
_TRANSACTION = (_COORDINATOR, _NEW)
_AT: Mapping[str, Any] = {"ledger_id": 1 << 40, "entry_id": 0}
"""A message that is nowhere."""


def _opened(world: World, said: Said) -> TxnId:
    """The transaction that this connection has opened, or was refused."""
    told = said[-1].new_txn_response if said and said[-1].type == BaseCommand.NEW_TXN_RESPONSE else None
    return TxnId(0, 1 << 40) if told is None else TxnId(told.txnid_most_bits, told.txnid_least_bits)


def _about(name: str, of: Callable[[World, Said], TxnId], **more: Callable[[World], Any]) -> Step:
    """A command about a transaction."""

    def step(world: World, said: Said) -> bytes:
        txn_id = of(world, said)
        fields = {each: value(world) for each, value in more.items()}
        return encode(command(name, request_id=40, txnid_most_bits=txn_id.most, txnid_least_bits=txn_id.least, **fields))

    return step


def _another(world: World, _: Said) -> TxnId:
    return world.txn_id


def _subscription_of(world: World) -> Mapping[str, str]:
    return {"topic": world.topic, "subscription": world.subscription}


def _connect_again(world: World, _: Said) -> bytes:
    return encode(command("CONNECT", client_version="again", auth_method_name="token", auth_data=world.credentials))


def _auth_response(world: World, _: Said) -> bytes:
    told = {"auth_method_name": "token", "auth_data": world.credentials}
    return encode(command("AUTH_RESPONSE", client_version="test", response=told, protocol_version=21))


_ABOUT_A_CONSUMER: Mapping[str, Mapping[str, Any]] = {
    "FLOW": {"message_permits": 1},
    "ACK": {"ack_type": api.CommandAck.Individual, "message_id": [_AT], "request_id": 50},
    "REDELIVER_UNACKNOWLEDGED_MESSAGES": {},
    "UNSUBSCRIBE": {"request_id": 51},
    "SEEK": {"request_id": 52, "message_publish_time": 1},
    "GET_LAST_MESSAGE_ID": {"request_id": 53},
    "CONSUMER_STATS": {"request_id": 54},
    "CLOSE_CONSUMER": {"request_id": 55},
}
_ABOUT_A_TRANSACTION: Mapping[str, Mapping[str, Callable[[World], Any]]] = {
    "ADD_PARTITION_TO_TXN": {"partitions": lambda world: [world.topic]},
    "ADD_SUBSCRIPTION_TO_TXN": {"subscription": lambda world: [_subscription_of(world)]},
    "END_TXN": {"txn_action": lambda _: api.ABORT},
}

_ENDED: Mapping[str, Callable[[World], Any]] = {
    "txn_action": lambda _: api.ABORT,
    "txnid_least_bits_of_low_watermark": lambda _: 0,
}


def _send(name: str = "SEND") -> Step:
    return lambda _, __: encode(command(name, producer_id=1, sequence_id=0), message())


def conversations(topic: str, subscription: str) -> Mapping[str, Sequence[Step]]:
    """Conversations by name, which begins with the type of the last command."""
    alone = {name: (_given(each),) for name, each in commands(topic, subscription).items()}
    consumers = {
        f"{name} after SUBSCRIBE": (_SUBSCRIBE, _plain(name, consumer_id=1, **fields))
        for name, fields in _ABOUT_A_CONSUMER.items()
    }
    of_none = {f"{name} of no consumer": (_plain(name, consumer_id=9, **fields),) for name, fields in _ABOUT_A_CONSUMER.items()}
    own = {f"{name} {OWN}": (*_TRANSACTION, _about(name, _opened, **more)) for name, more in _ABOUT_A_TRANSACTION.items()}
    others = {f"{name} {OTHERS}": (_COORDINATOR, _about(name, _another, **more)) for name, more in _ABOUT_A_TRANSACTION.items()}
    return {
        **alone,
        "CONNECT a second time": (_connect_again,),
        "AUTH_RESPONSE that nobody asked for": (_auth_response,),
        "PING": (_plain("PING"),),
        "PONG": (_plain("PONG"),),
        "SEND after PRODUCER": (_PRODUCER, _send()),
        "SEND of no producer": (_send(),),
        "CLOSE_PRODUCER after PRODUCER": (_PRODUCER, _plain("CLOSE_PRODUCER", producer_id=1, request_id=56)),
        "CLOSE_PRODUCER of no producer": (_plain("CLOSE_PRODUCER", producer_id=9, request_id=56),),
        **consumers,
        **of_none,
        "WATCH_TOPIC_LIST_CLOSE after WATCH_TOPIC_LIST": (
            _WATCH,
            _plain("WATCH_TOPIC_LIST_CLOSE", request_id=57, watcher_id=1),
        ),
        "WATCH_TOPIC_LIST_CLOSE of no watcher": (_plain("WATCH_TOPIC_LIST_CLOSE", request_id=57, watcher_id=9),),
        "TC_CLIENT_CONNECT_REQUEST": (_COORDINATOR,),
        "NEW_TXN": _TRANSACTION,
        **own,
        **others,
        "END_TXN_ON_PARTITION": (_about("END_TXN_ON_PARTITION", _another, topic=lambda world: world.topic, **_ENDED),),
        "END_TXN_ON_SUBSCRIPTION": (_about("END_TXN_ON_SUBSCRIPTION", _another, subscription=_subscription_of, **_ENDED),),
    }


def _given(each: BaseCommand) -> Step:
    return lambda _, __: encode(each)


def error_in(answer: BaseCommand) -> int | None:
    """The code of the failure, in whichever field the answer has it."""
    body = getattr(answer, _BODIES[answer.type])
    for name in ("error", "error_code"):
        if name in body.DESCRIPTOR.fields_by_name and body.HasField(name):
            return int(getattr(body, name))
    return None


def letter(answers: Iterable[BaseCommand], *, ended: bool) -> str:
    """`A` done; `4` AuthorizationError; `R` another error; `E` no answer and the end of the connection; `.` no answer."""
    told = next((each for each in answers if each.type not in UNASKED), None)
    if told is None:
        return "E" if ended else "."
    code = error_in(told)
    if code is None:
        return "A"
    return "4" if code == AUTHORIZATION_ERROR else "R"
