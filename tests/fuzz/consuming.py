"""Commands about consumers, as a client of many moods sends them. Pure; all chance is handed in."""

from random import Random

from tests.wire.frame_samples import frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from . import odd
from .asked import Asked
from .knowledge import Knowledge, Peer
from .producing import any_schema
from .sections import NOW_MS


def _consumer_id(rng: Random, peer: Peer) -> int:
    """One that is there, if there is one and nothing else comes to mind."""
    return odd.either(rng, rng.choice(list(peer.consumers) or [0]), (0, 3, 77, odd.WORDS[-1]), 12)


def subscribe(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandSubscribe(
        topic=known.topic(rng),
        subscription=odd.text(rng, rng.choice(("s1", "s2", "s3", "s4")), 20),
        sub_type=odd.value_of(rng, api.CommandSubscribe.SubType),
        consumer_id=rng.randrange(4),
        request_id=peer.next_request(rng),
        durable=not odd.is_odd(rng, 4),
        initial_position=rng.choice((api.CommandSubscribe.Earliest, api.CommandSubscribe.Latest)),
        force_topic_creation=not odd.is_odd(rng, 12),
        read_compacted=odd.is_odd(rng, 10),
        replicate_subscription_state=odd.is_odd(rng, 10),
    )
    if odd.is_odd(rng, 3):
        told.consumer_name = odd.text(rng, rng.choice(("c1", "c2")), 4)
    if odd.is_odd(rng, 5):
        told.priority_level = rng.choice(odd.NUMBERS)
    if odd.is_odd(rng, 3):
        told.start_message_id.CopyFrom(known.place(rng))
    if odd.is_odd(rng, 8):
        told.start_message_rollback_duration_sec = rng.choice(odd.WORDS)
    if odd.is_odd(rng, 6):
        told.schema.CopyFrom(any_schema(rng))
    if odd.is_odd(rng, 6):
        told.consumer_epoch = rng.choice(odd.WORDS)
    if odd.is_odd(rng, 3):
        _share_keys(rng, told.key_shared_meta)
    for _ in range(rng.choice((0, 0, 0, 1, 40))):
        told.metadata.add(key=odd.text(rng, "k"), value=odd.text(rng, "v"))
    for _ in range(rng.choice((0, 0, 0, 1, 40))):
        key = odd.text(rng, rng.choice(("k", "#pulsar.internal.delayed.bucket_0_1", "magnetar.x")), 4)
        told.subscription_properties.add(key=key, value=odd.text(rng, "v"))
    return Asked(frame(command := BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=told)), command)


def _share_keys(rng: Random, meta: api.KeySharedMeta) -> None:
    meta.key_shared_mode = rng.choice((api.AUTO_SPLIT, api.STICKY))
    meta.allow_out_of_order_delivery = odd.is_odd(rng, 3)
    for _ in range(rng.choice((0, 1, 2, 200))):
        start = odd.either(rng, rng.randrange(65536), odd.NUMBERS, 10)
        meta.hash_ranges.add(start=start, end=odd.either(rng, min(start + 2000, 65535), odd.NUMBERS, 10))


def flow(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    permits = odd.either(rng, rng.choice((1, 10, 1000)), ((1 << 31) - 1, 1 << 20), 5)
    permits = odd.either(rng, permits, (0, 1 << 31, (1 << 32) - 1), 100)
    told = api.CommandFlow(consumer_id=_consumer_id(rng, peer), message_permits=permits)
    command = BaseCommand(type=BaseCommand.FLOW, flow=told)
    return Asked(frame(command), command, ends=not 0 < permits < 1 << 31)


def ack(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandAck(
        consumer_id=_consumer_id(rng, peer), ack_type=odd.either(rng, api.CommandAck.Individual, [api.CommandAck.Cumulative], 3)
    )
    told.message_id.extend(known.place(rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 20))))
    if rng.random() < 0.7:
        told.request_id = peer.next_request(rng)
    if odd.is_odd(rng, 5):
        told.txnid_most_bits, told.txnid_least_bits = known.transaction(rng)
    if odd.is_odd(rng, 30):
        told.ClearField("txnid_most_bits")
    if odd.is_odd(rng, 12):
        told.validation_error = odd.value_of(rng, api.CommandAck.ValidationError)
    for _ in range(rng.choice((0, 0, 0, 0, 1, 2000))):
        told.properties.add(key=odd.text(rng, "k"), value=rng.choice(odd.WORDS))
    return Asked(frame(command := BaseCommand(type=BaseCommand.ACK, ack=told)), command)


def redeliver(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandRedeliverUnacknowledgedMessages(consumer_id=_consumer_id(rng, peer))
    told.message_ids.extend(known.place(rng) for _ in range(rng.choice((0, 1, 5, 50))))
    if odd.is_odd(rng, 3):
        told.consumer_epoch = rng.choice(odd.WORDS)
    kind = BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES
    return Asked(frame(command := BaseCommand(type=kind, redeliver_unacknowledged_messages=told)), command)


def seek(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandSeek(consumer_id=_consumer_id(rng, peer), request_id=peer.next_request(rng))
    if rng.random() < 0.6:
        told.message_id.CopyFrom(known.place(rng))
    if rng.random() < 0.4:
        told.message_publish_time = odd.either(rng, NOW_MS - 1000, odd.WORDS, 2)
    return Asked(frame(command := BaseCommand(type=BaseCommand.SEEK, seek=told)), command)


def unsubscribe(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandUnsubscribe(
        consumer_id=_consumer_id(rng, peer), request_id=peer.next_request(rng), force=odd.is_odd(rng, 3)
    )
    return Asked(frame(command := BaseCommand(type=BaseCommand.UNSUBSCRIBE, unsubscribe=told)), command)


def close_consumer(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandCloseConsumer(consumer_id=rng.randrange(4), request_id=peer.next_request(rng))
    peer.consumers.pop(told.consumer_id, None)
    return Asked(frame(command := BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=told)), command)


def last_message_id(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandGetLastMessageId(consumer_id=_consumer_id(rng, peer), request_id=peer.next_request(rng))
    return Asked(frame(command := BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, get_last_message_id=told)), command)


def consumer_stats(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandConsumerStats(consumer_id=_consumer_id(rng, peer), request_id=peer.next_request(rng))
    return Asked(frame(command := BaseCommand(type=BaseCommand.CONSUMER_STATS, consumer_stats=told)), command)
