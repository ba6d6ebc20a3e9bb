"""Apache's Python client (the C++ client underneath), unmodified: REST, HTTP lookup, and a server that is killed."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition

from tests.clients.python_client import (
    names,
    nothing_comes,
    nothing_comes_into,
    publish,
    put_json,
    quiet_client,
    receive,
    until,
)
from tests.clients.server_process import Ready, ServerProcess

pytestmark = pytest.mark.clients


def test_failover_gives_all_to_one_and_the_rest_to_the_next(client: pulsar.Client, topic: str) -> None:
    first = client.subscribe(topic, "s", consumer_type=ConsumerType.Failover, consumer_name="a")
    second = client.subscribe(topic, "s", consumer_type=ConsumerType.Failover, consumer_name="b")
    publish(client, topic, 20)
    got: list[set[str]] = [set(), set()]
    while nothing_comes_into(first, got[0], 500) and nothing_comes_into(second, got[1], 500):
        pass
    active, waiting = (first, second) if got[0] else (second, first)
    assert got[0] | got[1] == {"m0"}
    assert receive(active, 9) == names(1, 9)
    assert nothing_comes(waiting)
    active.close()
    assert receive(waiting, 10) == names(10, 10)
    waiting.close()


@pytest.mark.parametrize("suffix", ["", "-partition-0"])
def test_topics_are_created_listed_and_deleted_over_rest(server: Ready, topic: str, suffix: str) -> None:
    name = topic.removeprefix("persistent://")
    put_json(server, f"/admin/v2/persistent/{name}" + ("/partitions" if suffix else ""), 1 if suffix else None)
    listed = json.loads(fetch(server, "/admin/v2/persistent/public/default"))
    assert topic + suffix in listed
    stats = json.loads(fetch(server, f"/admin/v2/persistent/{name}{suffix}/stats"))
    assert (stats["msgInCounter"], stats["subscriptions"]) == (0, {})
    lookup = json.loads(fetch(server, f"/lookup/v2/topic/persistent/{name}"))
    assert lookup["brokerUrl"].startswith("pulsar://")
    request = urllib.request.Request(
        server.web_url + f"/admin/v2/persistent/{name}" + ("/partitions" if suffix else ""), method="DELETE"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 204
    assert topic + suffix not in json.loads(fetch(server, "/admin/v2/persistent/public/default"))


def test_an_unknown_topic_is_404_over_rest(server: Ready) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        fetch(server, "/admin/v2/persistent/public/default/nowhere/stats")
    refused.value.close()


def test_a_client_may_use_the_http_url(server: Ready, topic: str) -> None:
    with closing(quiet_client(server.web_url)) as over_http:
        consumer = over_http.subscribe(topic, "s")
        publish(over_http, topic, 3)
        assert receive(consumer, 3) == names(0, 3)


def test_kill_9_in_mid_traffic_loses_nothing_acknowledged(own_server: ServerProcess, topic: str) -> None:
    assert own_server.ready is not None
    with closing(quiet_client(own_server.ready.broker_url)) as client:
        consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
        producer = client.create_producer(topic, block_if_queue_full=True, send_timeout_millis=0)
        confirmed: set[str] = set()
        for round_number in range(3):
            for index in range(500):
                name = f"{round_number}-{index}"
                producer.send_async(name.encode(), remember(confirmed, name))
            if round_number < 2:
                own_server.kill()
                own_server.start()
        producer.flush()
        assert len(confirmed) == 1500
        got: set[str] = set()
        until(lambda: not nothing_comes_into(consumer, got, 100) and confirmed <= got)


def test_a_cursor_resumes_after_kill_9(own_server: ServerProcess, topic: str) -> None:
    assert own_server.ready is not None
    with closing(quiet_client(own_server.ready.broker_url)) as client:
        consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
        publish(client, topic, 20)
        receive(consumer, 10)
        consumer.close()
        own_server.kill()
        own_server.start()
        consumer = client.subscribe(topic, "s")
        rest: list[str] = []
        while not rest or rest[-1] != "m19":
            rest += receive(consumer, 1)
        assert rest[-10:] == names(10, 10)
        assert rest == names(20 - len(rest), len(rest))


def fetch(server: Ready, path: str) -> bytes:
    with urllib.request.urlopen(server.web_url + path, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def remember(confirmed: set[str], name: str) -> Callable[[Any, Any], None]:
    def confirm(result: Any, message_id: Any) -> None:
        if result == pulsar.Result.Ok:
            confirmed.add(name)

    return confirm
