"""Commands about producers and schemas, as a client of many moods sends them. Pure; all chance is handed in."""

from random import Random

from tests.wire.frame_samples import frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from . import odd
from .asked import Asked
from .knowledge import Knowledge, Peer
from .sections import any_section

_RECORD = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
_OTHER = b'{"type":"record","name":"R","fields":[{"name":"b","type":"string"}]}'
_DEFINITIONS = (
    _RECORD,
    _RECORD,
    _OTHER,
    b"",
    b"{]",
    b"null",
    b'{"type":"record","name":"R","fields":[{"name":"a","type":"R"}]}',
    b'["null","int"]',
    b"[" * 5000,
    b'{"type":"record","name":"1","fields":1}',
    b"\x00\x00\x00\x03abc\xff\xff\xff\xff",
    b"\x00" * 2000,
)


def any_schema(rng: Random) -> api.Schema:
    kind = odd.value_of(rng, api.Schema.Type) if odd.is_odd(rng, 3) else api.Schema.Avro
    schema = api.Schema(name=odd.text(rng, "s"), schema_data=rng.choice(_DEFINITIONS), type=kind)
    for key in odd.some(rng, ("kv.encoding.type", "key.schema.type", "value.schema.type", "__alwaysAllowNull", ""), 3):
        schema.properties.add(key=key, value=odd.text(rng, rng.choice(("INLINE", "SEPARATED", "AVRO", "true")), 3))
    return schema


def producer(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    asked = api.CommandProducer(topic=known.topic(rng), producer_id=rng.randrange(4), request_id=peer.next_request(rng))
    if odd.is_odd(rng, 2):
        asked.producer_name = odd.text(rng, rng.choice(("p1", "p2", *known.producer_names[-3:])), 10)
        asked.user_provided_producer_name = rng.random() < 0.7
    if odd.is_odd(rng, 2):
        asked.producer_access_mode = odd.value_of(rng, api.ProducerAccessMode)
    if odd.is_odd(rng, 6):
        asked.topic_epoch = rng.choice((0, 1, 2, *odd.WORDS))
    if odd.is_odd(rng, 4):
        asked.epoch = rng.choice((0, 1, 2, *odd.WORDS))
    if odd.is_odd(rng, 5):
        asked.schema.CopyFrom(any_schema(rng))
    if odd.is_odd(rng, 8):
        asked.initial_subscription_name = odd.text(rng, "initial", 3)
    asked.encrypted, asked.txn_enabled = odd.is_odd(rng, 20), odd.is_odd(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 40))):
        asked.metadata.add(key=odd.text(rng, "k"), value=odd.text(rng, "v"))
    return Asked(frame(command := BaseCommand(type=BaseCommand.PRODUCER, producer=asked)), command)


def send(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    """A SEND of a producer that exists, now and then of one that does not."""
    if not peer.producers and not odd.is_odd(rng, 30):
        return producer(rng, peer, known)
    if not peer.producers or odd.is_odd(rng, 200):
        command = BaseCommand(type=BaseCommand.SEND, send=api.CommandSend(producer_id=77, sequence_id=1))
        return Asked(frame(command, any_section(rng, 1, "p").data), command, ends=True)
    producer_id = rng.choice(list(peer.producers))
    at = peer.producers[producer_id]
    at.sequence_id += rng.choice((1, 1, 1, 1, 2, 0, -3, 1000)) if at.sequence_id < 1 << 40 else 1
    sequence_id = odd.either(rng, at.sequence_id, odd.WORDS, 25) & odd.WORDS[-1]
    found = any_section(rng, sequence_id, at.name)
    told = api.CommandSend(producer_id=producer_id, sequence_id=sequence_id)
    if found.messages != 1 or odd.is_odd(rng, 10):
        told.num_messages = found.messages
    if found.messages > 1 and odd.is_odd(rng, 2):
        told.highest_sequence_id = odd.either(rng, (sequence_id + found.messages - 1) & odd.WORDS[-1], odd.WORDS)
    told.is_chunk, told.marker = found.is_chunk, odd.is_odd(rng, 40)
    if odd.is_odd(rng, 10):
        told.txnid_most_bits, told.txnid_least_bits = known.transaction(rng)
    if odd.is_odd(rng, 60):
        told.message_id.CopyFrom(known.place(rng))
    command = BaseCommand(type=BaseCommand.SEND, send=told)
    is_filtered = found.is_filtered or told.marker or told.HasField("txnid_least_bits")
    return Asked(frame(command, found.data), command, is_filtered=is_filtered)


def close_producer(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandCloseProducer(producer_id=rng.randrange(4), request_id=peer.next_request(rng))
    peer.producers.pop(told.producer_id, None)
    return Asked(frame(command := BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=told)), command)


def get_schema(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandGetSchema(request_id=peer.next_request(rng), topic=known.topic(rng))
    if odd.is_odd(rng, 2):
        told.schema_version = rng.choice(
            (b"", b"\x00", bytes(8), b"\xff" * 8, bytes(63), bytes(64), *known.schema_versions[-2:])
        )
    return Asked(frame(command := BaseCommand(type=BaseCommand.GET_SCHEMA, get_schema=told)), command)


def get_or_create_schema(rng: Random, peer: Peer, known: Knowledge) -> Asked:
    told = api.CommandGetOrCreateSchema(request_id=peer.next_request(rng), topic=known.topic(rng), schema=any_schema(rng))
    command = BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA, get_or_create_schema=told)
    return Asked(frame(command), command)
