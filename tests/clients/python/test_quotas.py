"""Apache's Python client meets backlog quotas, retention and operators who move its place.

With PULSAR_TEST_URL the tests run against that server, which must have the settings below: quotas checked every second, and
ledgers of ten entries.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition

from tests.clients.python_client import TIMEOUT_MS, names, nothing_comes, publish, quiet_client, receive, until
from tests.clients.server_process import Ready, given_or_started

pytestmark = pytest.mark.clients

SETTINGS = (
    "backlogQuotaCheckIntervalInSeconds=1",
    "retentionCheckIntervalInSeconds=1",
    "managedLedgerMaxEntriesPerLedger=10",
    "managedLedgerMinLedgerRolloverTimeMinutes=0",
)
NAMESPACE = "/admin/v2/namespaces/public/default"
BLOCKED = {
    "producer_request_hold": pulsar.ProducerBlockedQuotaExceededError,
    "producer_exception": pulsar.ProducerBlockedQuotaExceededException,
}


class Operator:
    """Somebody with the admin REST."""

    def __init__(self, server: Ready) -> None:
        self._web_url = server.web_url

    def call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._web_url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def topic(self, method: str, topic: str, path: str, body: object = None) -> Any:
        return self.call(method, f"/admin/v2/{topic.replace('://', '/')}/{path}", body)

    def backlog(self, topic: str, subscription: str) -> Any:
        return self.topic("GET", topic, "stats")["subscriptions"][subscription]

    def ledgers(self, topic: str) -> int:
        return len(self.topic("GET", topic, "internalStats")["ledgers"])


@pytest.fixture(scope="module")
def quota_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with given_or_started(tmp_path_factory.mktemp("quotas"), SETTINGS) as ready:
        yield ready


@pytest.fixture
def operator(quota_server: Ready) -> Iterator[Operator]:
    """Leaves the namespace as it was."""
    operator = Operator(quota_server)
    yield operator
    for path in ("retention", "messageTTL", "backlogQuota", "backlogQuota?backlogQuotaType=message_age"):
        operator.call("DELETE", f"{NAMESPACE}/{path}")


@pytest.fixture
def quota_client(quota_server: Ready) -> Iterator[pulsar.Client]:
    client = quiet_client(quota_server.broker_url)
    yield client
    client.close()


def is_blocked(client: pulsar.Client, topic: str, error: type[Exception]) -> bool:
    try:
        client.create_producer(topic).close()
    except error:
        return True
    return False


@pytest.mark.parametrize("policy", list(BLOCKED))
def test_a_full_backlog_ends_producers_and_refuses_them_until_it_is_consumed(
    quota_client: pulsar.Client, operator: Operator, topic: str, policy: str
) -> None:
    consumer = quota_client.subscribe(topic, "s")
    producer = quota_client.create_producer(topic, send_timeout_millis=3_000)
    producer.send(b"x")
    operator.call("POST", f"{NAMESPACE}/backlogQuota", {"limitSize": 10_000, "limitTime": -1, "policy": policy})
    for _ in range(3):
        producer.send(bytes(4_000))
    until(lambda: is_blocked(quota_client, topic, BLOCKED[policy]))
    until(lambda: not producer.is_connected())
    for _ in range(4):
        consumer.acknowledge(consumer.receive(timeout_millis=TIMEOUT_MS))
    until(lambda: not is_blocked(quota_client, topic, BLOCKED[policy]))
    publish(quota_client, topic, 1)
    assert receive(consumer, 1) == ["m0"]


def test_eviction_takes_the_oldest_and_producers_never_notice(
    quota_client: pulsar.Client, operator: Operator, topic: str
) -> None:
    consumer = quota_client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
    other = quota_client.subscribe(topic, "other")
    quota = {"limitSize": 20_000, "limitTime": -1, "policy": "consumer_backlog_eviction"}
    operator.call("POST", f"{NAMESPACE}/backlogQuota", quota)
    producer = quota_client.create_producer(topic)
    for number in range(40):
        producer.send(b"%4d" % number + bytes(996))
    receive(other, 40)
    until(lambda: operator.topic("GET", topic, "stats?getPreciseBacklog=true")["backlogSize"] < 20_000)
    assert 5 <= operator.backlog(topic, "s")["msgBacklog"] <= 19
    assert operator.backlog(topic, "other")["msgBacklog"] == 0
    assert producer.is_connected()
    producer.send(b"  40")
    consumer.close()


def too_old_after_a_second(operator: Operator, policy: str) -> None:
    """Quota by age: entries of a ledger that was closed so long ago are too old."""
    quota = {"limitSize": -1, "limitTime": 1, "policy": policy}
    operator.call("POST", f"{NAMESPACE}/backlogQuota?backlogQuotaType=message_age", quota)


@pytest.mark.parametrize("policy", list(BLOCKED))
def test_a_backlog_too_old_ends_producers_and_refuses_them_until_it_is_consumed(
    quota_client: pulsar.Client, operator: Operator, topic: str, policy: str
) -> None:
    consumer = quota_client.subscribe(topic, "s")
    producer = quota_client.create_producer(topic, send_timeout_millis=3_000)
    for number in range(10):
        producer.send(f"m{number}".encode())
    too_old_after_a_second(operator, policy)
    until(lambda: is_blocked(quota_client, topic, BLOCKED[policy]))
    until(lambda: not producer.is_connected())
    assert receive(consumer, 10) == names(0, 10)
    until(lambda: not is_blocked(quota_client, topic, BLOCKED[policy]))
    publish(quota_client, topic, 1)
    assert receive(consumer, 1) == ["m0"]


def test_eviction_by_age_takes_whole_ledgers_and_producers_never_notice(
    quota_client: pulsar.Client, operator: Operator, topic: str
) -> None:
    consumer = quota_client.subscribe(topic, "s", receiver_queue_size=1)
    producer = quota_client.create_producer(topic)
    for number in range(25):
        producer.send(f"m{number}".encode())
    too_old_after_a_second(operator, "consumer_backlog_eviction")
    until(lambda: operator.backlog(topic, "s")["msgBacklog"] == 5)
    assert producer.is_connected()
    consumer.close()
    consumer = quota_client.subscribe(topic, "s")
    assert receive(consumer, 5) == names(20, 5)


def test_a_terminated_topic_is_read_to_its_end_and_takes_no_more(
    quota_client: pulsar.Client, operator: Operator, topic: str
) -> None:
    consumer = quota_client.subscribe(topic, "s")
    producer = quota_client.create_producer(topic)
    last = [producer.send(f"m{number}".encode()) for number in range(3)][-1]
    told = operator.topic("POST", topic, "terminate")
    assert (told["ledgerId"], told["entryId"]) == (last.ledger_id(), last.entry_id())
    with pytest.raises(pulsar.TopicTerminated):
        producer.send(b"too late")
    with pytest.raises(pulsar.TopicTerminated):
        quota_client.create_producer(topic)
    assert receive(consumer, 3) == names(0, 3)
    assert nothing_comes(consumer)


def test_retention_that_is_set_and_taken_back_works_on_a_topic_in_use(
    quota_client: pulsar.Client, operator: Operator, topic: str
) -> None:
    operator.call("POST", f"{NAMESPACE}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    consumer = quota_client.subscribe(topic, "s")
    publish(quota_client, topic, 35)
    receive(consumer, 35)
    until(lambda: operator.backlog(topic, "s")["msgBacklog"] == 0)
    assert operator.ledgers(topic) == 4
    reader = quota_client.create_reader(topic, pulsar.MessageId.earliest)
    assert [reader.read_next(timeout_millis=TIMEOUT_MS).data().decode() for _ in range(35)] == names(0, 35)
    reader.close()
    operator.call("POST", f"{NAMESPACE}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
    until(lambda: operator.ledgers(topic) == 1)
    publish(quota_client, topic, 5, first=35)
    assert receive(consumer, 5) == names(35, 5)


def test_an_operator_skips_expires_resets_and_truncates_under_a_consumer(
    quota_client: pulsar.Client, operator: Operator, topic: str
) -> None:
    consumer = quota_client.subscribe(
        topic, "s", consumer_type=ConsumerType.Shared, initial_position=InitialPosition.Earliest, receiver_queue_size=1
    )
    retained = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    operator.call("POST", f"{NAMESPACE}/retention", retained)
    ids = publish(quota_client, topic, 30)
    assert receive(consumer, 5) == names(0, 5)
    until(lambda: operator.backlog(topic, "s")["msgBacklog"] == 25)
    operator.topic("POST", topic, "subscription/s/skip/15")
    assert operator.backlog(topic, "s")["msgBacklog"] == 10
    body = {"ledgerId": ids[24].ledger_id(), "entryId": ids[24].entry_id(), "partitionIndex": -1, "isExcluded": False}
    operator.topic("POST", topic, "subscription/s/expireMessages", body)
    until(lambda: operator.backlog(topic, "s")["msgBacklog"] == 5)
    peeked = urllib.request.Request(f"{operator._web_url}/admin/v2/{topic.replace('://', '/')}/subscription/s/position/1")
    with urllib.request.urlopen(peeked, timeout=60) as answer:
        assert answer.read() == b"m25"
        assert answer.headers["X-Pulsar-Message-ID"] == f"{ids[25].ledger_id()}:{ids[25].entry_id()}"
    body = {"ledgerId": ids[10].ledger_id(), "entryId": ids[10].entry_id(), "partitionIndex": -1, "isExcluded": True}
    operator.topic("POST", topic, "subscription/s/resetcursor", body)
    got: list[str] = []
    while "m29" not in got:  # what was with the client already may come once more
        got += receive(consumer, 1)
    assert set(names(11, 19)) <= set(got), got
    operator.topic("DELETE", topic, "truncate")
    until(lambda: operator.ledgers(topic) <= 1)
    assert operator.backlog(topic, "s")["msgBacklog"] == 0
    assert nothing_comes(consumer)
    consumer.close()
