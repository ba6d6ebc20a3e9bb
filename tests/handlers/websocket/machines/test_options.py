"""Parameters of a session, with Apache's defaults and bounds."""

import pytest

from handlers.websocket.errors import Refused
from handlers.websocket.machines.message_ids import EARLIEST, LATEST, text_of
from handlers.websocket.machines.options import (
    ConsumerOptions,
    ProducerOptions,
    consumer_options,
    producer_options,
    reader_options,
)
from wire.generated.pulsar_api_pb2 import ZSTD, CommandSubscribe

TOPIC = "persistent://a/b/t"


def test_without_parameters_the_defaults_are_apaches() -> None:
    assert producer_options({}) == ProducerOptions()
    assert consumer_options({}, TOPIC, "s") == ConsumerOptions()
    assert (reader_options({}).start, reader_options({}).window) == (LATEST, 1000)


def test_parameters_of_a_producer_are_read() -> None:
    found = producer_options(
        {
            "producerName": "p",
            "initialSequenceId": "-1",
            "sendTimeoutMillis": "0",
            "batchingEnabled": "true",
            "batchingMaxMessages": "5",
            "batchingMaxPublishDelay": "7",
            "maxPendingMessages": "9",
            "messageRoutingMode": "RoundRobinPartition",
            "hashingScheme": "Murmur3_32Hash",
            "compressionType": "ZSTD",
        }
    )
    assert producer_options({"maxPendingMessages": "1000000"}).pending_messages_max == 10_000
    assert found == ProducerOptions("p", -1, 0, True, 5, 7, 9, "RoundRobinPartition", "Murmur3_32Hash", ZSTD)


def test_parameters_of_a_consumer_are_read() -> None:
    found = consumer_options(
        {
            "subscriptionType": "Key_Shared",
            "subscriptionMode": "NonDurable",
            "subscriptionInitialPosition": "Earliest",
            "receiverQueueSize": "500000",
            "consumerName": "c",
            "priorityLevel": "2",
            "pullMode": "TRUE",
            "ackTimeoutMillis": "1000",
            "negativeAckRedeliveryDelay": "5",
            "maxRedeliverCount": "3",
        },
        TOPIC,
        "s",
    )
    assert found == ConsumerOptions(
        CommandSubscribe.Key_Shared, False, True, 1000, "c", 2, True, 1000, 5, 3, "persistent://a/b/t-s-DLQ"
    )
    assert consumer_options({"receiverQueueSize": "0"}, TOPIC, "s").window == 1


def test_a_reader_begins_where_its_message_id_says() -> None:
    text = text_of(5, 6, -1)
    assert reader_options({"messageId": "earliest"}).start == EARLIEST
    assert (reader_options({"messageId": text}).start.ledger_id, reader_options({"messageId": text}).start.entry_id) == (5, 6)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("producer", {"sendTimeoutMillis": "x"}),
        ("producer", {"sendTimeoutMillis": "-1"}),
        ("producer", {"sendTimeoutMillis": "9" * 5000}),
        ("producer", {"batchingMaxMessages": "0"}),
        ("producer", {"maxPendingMessages": "\u0663"}),
        ("producer", {"messageRoutingMode": "Any"}),
        ("producer", {"compressionType": "GZIP"}),
        ("producer", {"encryptionKeys": "k"}),
        ("consumer", {"subscriptionType": "Exclusiv"}),
        ("consumer", {"ackTimeoutMillis": "5"}),
        ("consumer", {"deadLetterTopic": "t"}),
        ("reader", {"messageId": "%%"}),
        ("reader", {"messageId": "AAAA"}),
        ("reader", {"messageId": "A" * 5000}),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused_with_400_and_its_name(kind: str, query: dict[str, str]) -> None:
    with pytest.raises(Refused, match="(?i)" + "|".join([*query, "Ack timeout", "MaxRedeliverCount"])) as refused:
        {
            "producer": producer_options,
            "consumer": lambda each: consumer_options(each, TOPIC, "s"),
            "reader": reader_options,
        }[kind](query)
    assert refused.value.status == 400
