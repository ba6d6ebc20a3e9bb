"""A topic that Apache's broker compacted is read, and compacted again, by one of ours; and the other way round.

Python's readers and table views ask; the bookies are ours.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import permutations

import pulsar
import pytest

from tests.clients.apache_broker_process import ApacheBrokerProcess, apache_classpath
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import Broker, get, put
from tests.clients.mixed_brokers import move, settle
from tests.clients.python_client import TIMEOUT_MS, quiet_client, until

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

_NEVER = -1


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[tuple[BrokerProcess, ApacheBrokerProcess]]:
    directory = tmp_path_factory.mktemp("compaction")
    classpath = apache_classpath(directory)
    with ExitStack() as running:
        ours = running.enter_context(BrokerProcess(directory / "ours", storage, "loadBalancerSheddingEnabled=false")).start()
        apaches = running.enter_context(ApacheBrokerProcess(directory / "apaches", storage, classpath)).start()
        yield ours, apaches
        apaches.stop()
        assert ours.stop() == 0, ours.log.read_text()


@pytest.fixture(params=[0, 1], ids=["from ours", "from Apache's"])
def both_ways(request: pytest.FixtureRequest, brokers: tuple[Broker, Broker]) -> tuple[Broker, Broker]:
    """The first to serve the topic, and the other."""
    first, second = list(permutations(brokers))[request.param]
    return first, second


def _path(topic: str, what: str) -> str:
    return f"/admin/v2/{topic.replace('://', '/')}/{what}"


def _fill(client: pulsar.Client, topic: str, newest: dict[str, str], name: str) -> None:
    """Twenty keys in batches and by themselves; three of them are removed at the end."""
    for is_batched in (True, False):
        producer = client.create_producer(
            topic, batching_enabled=is_batched, batching_max_publish_delay_ms=60_000, batching_max_messages=15
        )
        for number in range(60):
            key, value = f"k{number % 20}", f"{name}-{is_batched}-{number}"
            producer.send_async(value.encode(), lambda *_: None, partition_key=key)
            newest[key] = value
        producer.flush()
        producer.close()
    producer = client.create_producer(topic, batching_enabled=False)
    for key in ("k3", "k7", f"k{len(name)}"):
        producer.send(b"", partition_key=key)
        newest.pop(key, None)
    producer.close()


def _compact(topic: str, broker: Broker) -> int:
    """The compacted ledger's id."""
    before = get(broker, _path(topic, "internalStats"))["compactedLedger"]["ledgerId"]
    put(broker, _path(topic, "compaction"))

    def is_done() -> bool:
        status = get(broker, _path(topic, "compaction"))
        assert status["status"] != "ERROR", status
        return bool(status["status"] == "SUCCESS")

    until(is_done)
    after = get(broker, _path(topic, "internalStats"))["compactedLedger"]
    assert after["ledgerId"] != before
    assert after["entries"] > 0
    return int(after["ledgerId"])


def _read(client: pulsar.Client, topic: str) -> dict[str, str]:
    """The newest of each key that a reader of what is compacted gets, each at most once. Without those that have no body:
    Apache's compactor leaves them there when a client does not tell their size, as this one without batches."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    found: dict[str, str] = {}
    while reader.has_message_available():
        message = reader.read_next(timeout_millis=TIMEOUT_MS)
        if message.partition_key():  # what is compacted out of a batch has none
            assert message.partition_key() not in found
            found[message.partition_key()] = message.data().decode()
    reader.close()
    return {key: value for key, value in found.items() if value}


def _view(client: pulsar.Client, topic: str) -> dict[str, str]:
    view, found = client.create_table_view(topic), dict[str, str]()
    view.for_each(lambda key, value: found.update({key: value.decode()}))
    view.close()
    return found


def test_what_one_kind_of_broker_compacted_the_other_reads_and_compacts_again(
    both_ways: tuple[Broker, Broker], topic: str
) -> None:
    newest: dict[str, str] = {}
    ledgers = [_NEVER]
    for turn, broker in enumerate((*both_ways, both_ways[0])):
        move(topic, broker)
        with closing(quiet_client(broker.ready.broker_url)) as client:
            if turn:
                assert get(broker, _path(topic, "internalStats"))["compactedLedger"]["ledgerId"] == ledgers[-1]
                assert _read(client, topic) == newest, "as the other compacted it"
                assert _view(client, topic) == newest
            _fill(client, topic, newest, "x" * turn)
            ledgers.append(_compact(topic, broker))
            assert _read(client, topic) == newest
        settle(topic, broker)
    assert len(set(ledgers)) == 4
