"""Lookups, lists, transactions, the handshake, and what no client should send. Pure; all chance is handed in."""

from random import Random
from typing import Any

from tests.wire.frame_samples import frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from . import odd
from .asked import Asked
from .knowledge import NAMESPACE, Knowledge, Peer

BODIES = {field.number: field.name for field in BaseCommand.DESCRIPTOR.fields if field.number > 1}
FROM_BROKERS: tuple[Any, ...] = tuple(
    kind
    for kind in BaseCommand.Type.values()
    if BaseCommand.Type.Name(kind).endswith(("_RESPONSE", "_RECEIPT", "_SUCCESS", "_CHANGE", "_UPDATE", "_CHALLENGE"))
    and kind != BaseCommand.AUTH_RESPONSE
)


def connect(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    """The version is one of those that clients have, mostly today's."""
    told = api.CommandConnect(client_version=odd.text(rng, "fuzz", 10))
    told.protocol_version = odd.either(rng, 21, (20, 19, 18, 15, 12, 11, 8, 99, (1 << 31) - 1), 4)
    flags = told.feature_flags
    for name in odd.some(rng, [field.name for field in api.FeatureFlags.DESCRIPTOR.fields], 5):
        setattr(flags, name, True)
    if odd.is_odd(rng, 6):
        told.auth_method_name, told.auth_data = odd.text(rng, "token", 2), rng.randbytes(20)
    if odd.is_odd(rng, 20):
        told.original_principal = odd.text(rng, "somebody")
    return _of(BaseCommand.CONNECT, told, ends=peer.is_connected)


def partitions(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandPartitionedTopicMetadata(topic=known.topic(rng), request_id=peer.next_request(rng))
    told.metadata_auto_creation_enabled = rng.random() < 0.5
    return _of(BaseCommand.PARTITIONED_METADATA, told)


def lookup(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandLookupTopic(topic=known.topic(rng), request_id=peer.next_request(rng), authoritative=rng.random() < 0.5)
    if odd.is_odd(rng, 6):
        told.advertised_listener_name = odd.text(rng, "internal", 2)
    return _of(BaseCommand.LOOKUP, told)


def _namespace(rng: Random) -> str:
    return odd.either(rng, NAMESPACE, (*odd.TEXTS, "public/default", "nobody/nothing", "public/fuzz/x", "pulsar/system"), 5)


def topics(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandGetTopicsOfNamespace(request_id=peer.next_request(rng), namespace=_namespace(rng))
    told.mode = odd.value_of(rng, api.CommandGetTopicsOfNamespace.Mode)
    if odd.is_odd(rng, 2):
        told.topics_pattern = rng.choice(odd.PATTERNS)
    if odd.is_odd(rng, 4):
        told.topics_hash = odd.text(rng, "x")
    return _of(BaseCommand.GET_TOPICS_OF_NAMESPACE, told)


def watch(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandWatchTopicList(
        request_id=peer.next_request(rng),
        watcher_id=rng.choice((0, 1, odd.WORDS[-1])),
        namespace=_namespace(rng),
        topics_pattern=rng.choice(odd.PATTERNS),
    )
    if odd.is_odd(rng, 4):
        told.topics_hash = odd.text(rng, "x")
    return _of(BaseCommand.WATCH_TOPIC_LIST, told)


def watch_close(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandWatchTopicListClose(request_id=peer.next_request(rng), watcher_id=rng.choice((0, 1, 2)))
    return _of(BaseCommand.WATCH_TOPIC_LIST_CLOSE, told)


# ---- Transactions


def coordinator(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandTcClientConnectRequest(
        request_id=peer.next_request(rng), tc_id=odd.either(rng, rng.randrange(2), (15, 16, *odd.WORDS), 5)
    )
    return _of(BaseCommand.TC_CLIENT_CONNECT_REQUEST, told)


def new_transaction(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandNewTxn(
        request_id=peer.next_request(rng), tc_id=odd.either(rng, rng.randrange(2), (15, 16, *odd.WORDS), 8)
    )
    told.txn_ttl_seconds = odd.either(rng, 60_000, odd.WORDS, 4)
    return _of(BaseCommand.NEW_TXN, told)


def _with_transaction(rng: Random, told: Any, known: Knowledge) -> None:
    if not odd.is_odd(rng, 20):
        told.txnid_most_bits, told.txnid_least_bits = known.transaction(rng)


def add_partition(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandAddPartitionToTxn(request_id=peer.next_request(rng))
    _with_transaction(rng, told, known)
    told.partitions.extend(known.topic(rng) for _ in range(rng.choice((0, 1, 1, 2, 30))))
    return _of(BaseCommand.ADD_PARTITION_TO_TXN, told)


def add_subscription(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandAddSubscriptionToTxn(request_id=peer.next_request(rng))
    _with_transaction(rng, told, known)
    for _ in range(rng.choice((0, 1, 1, 2, 30))):
        told.subscription.add(topic=known.topic(rng), subscription=odd.text(rng, "s1"))
    return _of(BaseCommand.ADD_SUBSCRIPTION_TO_TXN, told)


def end_transaction(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandEndTxn(request_id=peer.next_request(rng))
    _with_transaction(rng, told, known)
    if not odd.is_odd(rng, 12):
        told.txn_action = rng.choice((api.COMMIT, api.ABORT))
    return _of(BaseCommand.END_TXN, told)


def end_on_partition(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandEndTxnOnPartition(request_id=peer.next_request(rng))
    _end_there(rng, told, known)
    if not odd.is_odd(rng, 12):
        told.topic = known.topic(rng)
    return _of(BaseCommand.END_TXN_ON_PARTITION, told)


def end_on_subscription(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandEndTxnOnSubscription(request_id=peer.next_request(rng))
    _end_there(rng, told, known)
    if not odd.is_odd(rng, 12):
        told.subscription.topic, told.subscription.subscription = known.topic(rng), odd.text(rng, "s1")
    return _of(BaseCommand.END_TXN_ON_SUBSCRIPTION, told)


def _end_there(rng: Random, told: Any, known: Knowledge) -> None:
    """Ends a transaction at a participant; the broker believes any peer. A transaction that is aborted so, and committed by its
    coordinator, is a conflict, which END_TXN reports."""
    told.txnid_most_bits, told.txnid_least_bits = known.transaction(rng)
    if not odd.is_odd(rng, 12):
        told.txn_action = rng.choice((api.COMMIT, api.ABORT))
    if odd.is_odd(rng, 3):
        told.txnid_least_bits_of_low_watermark = rng.choice(odd.WORDS)


# ---- What no client should send


def from_broker(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    """A whole command that only brokers send; or one of an exchange that was never begun."""
    kind = rng.choice((*FROM_BROKERS, BaseCommand.AUTH_RESPONSE))
    command = BaseCommand(type=kind)
    _fill(rng, getattr(command, BODIES[kind]))
    return Asked(frame(command), command, ends=True)


def _fill(rng: Random, message: Any) -> None:
    """Every member that has to be there."""
    message.SetInParent()
    for member in message.DESCRIPTOR.fields:
        if not member.is_required:
            continue
        if member.type == member.TYPE_MESSAGE:
            _fill(rng, getattr(message, member.name))
        elif member.type == member.TYPE_ENUM:
            setattr(message, member.name, rng.choice(member.enum_type.values).number)
        elif member.type == member.TYPE_STRING:
            setattr(message, member.name, "x")
        elif member.type == member.TYPE_BYTES:
            setattr(message, member.name, b"x")
        else:
            setattr(message, member.name, 1)


def incomplete(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    """A command of any type, known or not, without a field that it needs."""
    kind: Any = rng.choice((*BaseCommand.Type.values(), 1, 69, 70, 100))
    command = BaseCommand()
    if kind in BODIES:
        command.type = kind
        if odd.is_odd(rng, 2):
            getattr(command, BODIES[kind]).SetInParent()
        encoded = command.SerializePartialToString()
    else:
        encoded = b"\x08" + bytes([kind])
    return Asked((len(encoded) + 4).to_bytes(4) + len(encoded).to_bytes(4) + encoded, None, ends=True)


def mutated(rng: Random, one: Asked) -> Asked:
    """Some of its bytes are others, are gone, or are there twice."""
    data = bytearray(one.data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(min(len(data), 64)) if rng.random() < 0.7 else rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at] = rng.choice((0, 1, 127, 128, 255))
        elif how == 2:
            del data[at : at + rng.randrange(1, 9)]
        else:
            data[at:at] = data[at : at + rng.randrange(1, 9)]
        if not data:
            data = bytearray(b"\x00")
    return Asked(bytes(data), None, ends=True)


def _of(kind: BaseCommand.Type, told: Any, *, ends: bool = False) -> Asked:
    command = BaseCommand(type=kind)
    getattr(command, BODIES[kind]).CopyFrom(told)
    return Asked(frame(command), command, ends=ends)
