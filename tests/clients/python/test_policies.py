"""Apache's Python client meets the policies of a namespace and of a topic, set over REST while it is connected.

With PULSAR_TEST_URL (and PULSAR_TEST_WEB_URL) the tests run against that server, which must look for inactive
topics each second.
Times have lower bounds only: a slow machine takes longer.
"""

import json
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition

from tests.clients.python_client import nothing_comes, publish, quiet_client, receive, until
from tests.clients.server_process import Ready, given_or_started

pytestmark = pytest.mark.clients

SETTINGS = ("brokerDeleteInactiveTopicsEnabled=false", "brokerDeleteInactiveTopicsFrequencySeconds=1")
FIFTY = 50


class Place:
    """A namespace of the test's own, and a client."""

    def __init__(self, server: Ready, client: pulsar.Client) -> None:
        self.client = client
        self.url = server.broker_url
        self._web_url = server.web_url
        self.name = f"public/policies-{uuid.uuid4().hex[:8]}"
        self.call("PUT", f"/admin/v2/namespaces/{self.name}", {})

    def call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._web_url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def say(self, policy: str, value: object, method: str = "POST") -> None:
        self.call(method, f"/admin/v2/namespaces/{self.name}/{policy}", value)

    def say_of(self, topic: str, policy: str, value: object) -> None:
        self.call("POST", f"/admin/v2/persistent/{self.name}/{topic}/{policy}", value)

    def topic(self, name: str) -> str:
        return f"persistent://{self.name}/{name}"

    def stats(self, name: str) -> Any:
        return self.call("GET", f"/admin/v2/persistent/{self.name}/{name}/stats")

    def topics(self) -> list[str]:
        found: list[str] = self.call("GET", f"/admin/v2/persistent/{self.name}")
        return found


def impatient(place: Place, work: Callable[[pulsar.Client], object]) -> None:
    """With a client that gives up soon."""
    client = pulsar.Client(place.url, operation_timeout_seconds=3)
    try:
        work(client)
    finally:
        client.close()


@pytest.fixture(scope="module")
def policy_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with given_or_started(tmp_path_factory.mktemp("policies"), SETTINGS) as ready:
        yield ready


@pytest.fixture
def place(policy_server: Ready) -> Iterator[Place]:
    client = quiet_client(policy_server.broker_url)
    try:
        yield Place(policy_server, client)
    finally:
        client.close()


def test_publishing_goes_no_faster_than_the_rate_of_the_namespace_and_loses_nothing(place: Place) -> None:
    consumer = place.client.subscribe(place.topic("t"), "s")
    producer = place.client.create_producer(place.topic("t"), batching_enabled=False, block_if_queue_full=True)
    producer.send(b"first")
    place.say("publishRate", {"publishThrottlingRateInMsg": FIFTY, "publishThrottlingRateInByte": -1})
    began = time.monotonic()
    for number in range(3 * FIFTY):
        producer.send(b"m%d" % number)
    assert time.monotonic() - began >= 1.9
    assert receive(consumer, 3 * FIFTY + 1) == ["first", *[f"m{number}" for number in range(3 * FIFTY)]]


@pytest.mark.parametrize("policy", ["dispatchRate", "subscriptionDispatchRate"])
def test_delivery_goes_no_faster_than_the_rate_of_the_namespace_and_loses_nothing(place: Place, policy: str) -> None:
    publish(place.client, place.topic("t"), 3 * FIFTY)
    place.say(policy, {"dispatchThrottlingRateInMsg": FIFTY, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1})
    began = time.monotonic()
    consumer = place.client.subscribe(place.topic("t"), "s", initial_position=InitialPosition.Earliest)
    assert receive(consumer, 3 * FIFTY) == [f"m{number}" for number in range(3 * FIFTY)]
    assert time.monotonic() - began >= 1.9


def test_a_topic_s_own_rate_holds_before_its_namespace_s(place: Place) -> None:
    place.say("publishRate", {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": -1})
    producer = place.client.create_producer(place.topic("t"), batching_enabled=False)
    place.say_of("t", "publishRate", {"publishThrottlingRateInMsg": 100_000, "publishThrottlingRateInByte": -1})
    for _ in range(100):
        producer.send(b"x")


def test_a_consumer_that_subscribes_too_often_is_refused(place: Place) -> None:
    place.client.subscribe(place.topic("t"), "made").close()
    place.say("subscribeRate", {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 600})
    others = [quiet_client(place.url) for _ in range(2)]
    try:
        others[0].subscribe(place.topic("t"), "s", consumer_name="me").close()
        with pytest.raises(pulsar.NotAllowedError):
            others[1].subscribe(place.topic("t"), "s", consumer_name="me")
    finally:
        for other in others:
            other.close()


def test_maxima_of_producers_consumers_and_subscriptions(place: Place) -> None:
    name = place.topic("t")
    place.client.create_producer(name)
    place.client.subscribe(name, "s", ConsumerType.Shared)
    place.say("maxProducersPerTopic", 1)
    with pytest.raises(pulsar.ProducerBusy):
        place.client.create_producer(name)
    place.say("maxConsumersPerSubscription", 1)
    with pytest.raises(pulsar.ConsumerBusy):
        place.client.subscribe(name, "s", ConsumerType.Shared)
    place.say("maxConsumersPerTopic", 1)
    with pytest.raises(pulsar.ConsumerBusy):
        place.client.subscribe(name, "s2", ConsumerType.Shared)
    place.say("maxSubscriptionsPerTopic", 2)  # of which s2 is one
    with pytest.raises(pulsar.NotAllowedError):
        place.client.subscribe(name, "s3", ConsumerType.Shared)
    for policy in ("maxProducersPerTopic", "maxConsumersPerSubscription", "maxConsumersPerTopic", "maxSubscriptionsPerTopic"):
        place.say(policy, None, "DELETE")
    place.client.create_producer(name)
    place.client.subscribe(name, "s", ConsumerType.Shared)


def test_a_consumer_gets_no_more_than_may_be_unacknowledged(place: Place) -> None:
    consumer = place.client.subscribe(place.topic("t"), "s", ConsumerType.Shared)
    place.say("maxUnackedMessagesPerConsumer", 10)
    publish(place.client, place.topic("t"), 20)
    held = [consumer.receive(timeout_millis=60_000) for _ in range(10)]
    assert nothing_comes(consumer)
    for message in held:
        consumer.acknowledge(message)
    assert receive(consumer, 10) == [f"m{number}" for number in range(10, 20)]


def test_messages_that_nobody_takes_are_gone_after_their_time_to_live_and_not_at_the_next_round(place: Place) -> None:
    place.client.subscribe(place.topic("t"), "s").close()
    place.say("messageTTL", 2)
    publish(place.client, place.topic("t"), 10)
    began = time.monotonic()
    publish(place.client, place.topic("t"), 1)
    until(lambda: place.stats("t")["subscriptions"]["s"]["msgBacklog"] == 0)
    assert time.monotonic() - began >= 1.9
    assert place.stats("t")["subscriptions"]["s"]["totalMsgExpired"] == 11
    consumer = place.client.subscribe(place.topic("t"), "s")
    publish(place.client, place.topic("t"), 1, first=11)
    assert receive(consumer, 1) == ["m11"]


def test_types_of_subscription_are_refused_and_taken(place: Place) -> None:
    place.client.subscribe(place.topic("t"), "s").close()
    place.say("subscriptionTypesEnabled", ["Exclusive"])
    with pytest.raises(pulsar.NotAllowedError):
        place.client.subscribe(place.topic("t"), "s", ConsumerType.Shared)
    place.client.subscribe(place.topic("t"), "s").close()


def test_topics_and_subscriptions_are_made_by_themselves_as_the_namespace_says(place: Place) -> None:
    place.say("autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3})
    place.client.create_producer(place.topic("many")).close()
    assert place.client.get_topic_partitions(place.topic("many")) == [place.topic(f"many-partition-{n}") for n in range(3)]
    place.say("autoTopicCreation", {"allowAutoTopicCreation": False})
    with pytest.raises(pulsar.TopicNotFound):
        place.client.create_producer(place.topic("none"))
    place.say("autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
    with pytest.raises(pulsar.PulsarException):  # this client asks again until its time is over
        impatient(place, lambda client: client.subscribe(place.topic("many-partition-0"), "none"))
    assert place.call("GET", f"/admin/v2/persistent/{place.name}/many-partition-0/subscriptions") == []
    place.say("autoTopicCreation", None, "DELETE")
    place.say("maxTopicsPerNamespace", 3)
    with pytest.raises(pulsar.PulsarException):
        impatient(place, lambda client: client.create_producer(place.topic("fourth")))
    assert len(place.topics()) == 3


def test_a_topic_that_nobody_uses_is_deleted_when_its_namespace_says_so(place: Place) -> None:
    consumer = place.client.subscribe(place.topic("t"), "s")
    publish(place.client, place.topic("t"), 1)
    receive(consumer, 1)
    consumer.close()
    policy = {"inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up", "maxInactiveDurationSeconds": 1}
    place.say("inactiveTopicPolicies", {**policy, "deleteWhileInactive": True})
    until(lambda: place.topics() == [])
