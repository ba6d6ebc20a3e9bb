"""Apache's Python client (the C++ client underneath), unmodified: publishing, in every form a producer has."""

import shutil
import threading
from contextlib import closing
from pathlib import Path

import pulsar
import pytest
from pulsar import CompressionType, ConsumerType, ProducerAccessMode

from tests.clients.python_client import TIMEOUT_MS, names, nothing_comes, publish, quiet_client, receive
from tests.clients.server_process import Ready
from tests.toolchain import run_tool

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared, ConsumerType.KeyShared])
def test_published_messages_are_received_once_and_in_order(
    client: pulsar.Client, topic: str, batching: bool, kind: ConsumerType
) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    publish(client, topic, 200, batching)
    assert receive(consumer, 200) == names(0, 200)
    assert nothing_comes(consumer)
    consumer.close()


@pytest.mark.parametrize(
    "compression", [CompressionType.LZ4, CompressionType.ZLib, CompressionType.ZSTD, CompressionType.SNAPPY]
)
@pytest.mark.parametrize("batching", [False, True])
def test_compressed_messages_come_back_as_sent(
    client: pulsar.Client, topic: str, compression: CompressionType, batching: bool
) -> None:
    consumer = client.subscribe(topic, "s")
    publish(client, topic, 50, batching, compression_type=compression)
    assert receive(consumer, 50) == names(0, 50)
    consumer.close()


def test_properties_keys_and_times_come_back(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, producer_name="named", properties={"a": "b"})
    producer.send(b"x", properties={"k": "v", "ü": "ß"}, partition_key="key", event_timestamp=12345)
    message = consumer.receive(timeout_millis=TIMEOUT_MS)
    assert (message.properties(), message.partition_key(), message.event_timestamp()) == ({"k": "v", "ü": "ß"}, "key", 12345)
    assert message.producer_name() == "named"
    assert message.publish_timestamp() > 0
    assert message.topic_name() == topic
    producer.close()
    consumer.close()


def test_a_large_message_is_chunked_and_assembled(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    payload = bytes(range(256)) * (12 * 4096)
    producer.send(payload)
    message = consumer.receive(timeout_millis=TIMEOUT_MS)
    assert message.data() == payload
    consumer.acknowledge(message)
    producer.close()
    consumer.close()


def test_an_oversize_message_is_refused_and_the_producer_goes_on(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(b"x" * (6 << 20))
    producer.send(b"y" * (4 << 20))
    producer.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a key")
def test_encrypted_messages_are_stored_and_opened_by_the_key_holder(client: pulsar.Client, topic: str, tmp_path: Path) -> None:
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    run_tool(["openssl", "genrsa", "-out", str(private), "2048"], tmp_path, 60)
    run_tool(["openssl", "rsa", "-in", str(private), "-pubout", "-out", str(public)], tmp_path, 60)
    reader = pulsar.CryptoKeyReader(str(public), str(private))
    consumer = client.subscribe(topic, "s", crypto_key_reader=reader)
    producer = client.create_producer(topic, encryption_key="key", crypto_key_reader=reader)
    producer.send(b"secret")
    assert consumer.receive(timeout_millis=TIMEOUT_MS).data() == b"secret"
    producer.close()
    consumer.close()


def test_a_second_exclusive_producer_is_fenced_off(client: pulsar.Client, topic: str) -> None:
    first = client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    with pytest.raises((pulsar.ProducerFenced, pulsar.ProducerBusy)):
        client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    with pytest.raises((pulsar.ProducerFenced, pulsar.ProducerBusy)):
        client.create_producer(topic)
    first.send(b"still mine")
    taker = client.create_producer(topic, access_mode=ProducerAccessMode.ExclusiveWithFencing)
    taker.send(b"mine now")
    with pytest.raises(pulsar.PulsarException):
        first.send(b"not any more")
    taker.close()


def test_a_waiting_producer_gets_its_turn(server: Ready, client: pulsar.Client, topic: str) -> None:
    first = client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
    turn = threading.Event()

    def wait() -> None:
        producer = other.create_producer(topic, access_mode=ProducerAccessMode.WaitForExclusive)
        producer.send(b"x")
        turn.set()

    with closing(quiet_client(server.broker_url)) as other:
        thread = threading.Thread(target=wait)
        thread.start()
        try:
            assert not turn.wait(0.3)
        finally:
            first.close()
            thread.join()
    assert turn.is_set()


def test_two_producers_of_one_name_are_refused(client: pulsar.Client, topic: str) -> None:
    first = client.create_producer(topic, producer_name="me")
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic, producer_name="me")
    first.close()
