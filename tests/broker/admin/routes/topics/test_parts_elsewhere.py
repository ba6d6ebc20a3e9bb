"""Operations on a partitioned topic of several brokers: each broker serves its own partitions, and no redirect goes in
circles."""

import asyncio
from typing import Any

import pytest

from broker.admin.rest import each_partition
from broker.admin.rest.answers import Refusal
from broker.admin.rest.elsewhere import pass_on
from broker.service.addresses import Advertised
from broker.service.neighbours.neighbours import Neighbours
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.admin.stats.test_partitioned_stats import OwnerOfTheFirst
from tests.broker.topic.topic_world import payload, send_run, settle

THERE = "http://other:8080/admin/v2/persistent/public/default/t-partition-{}/"


class Elsewhere:
    """The other broker: what it is asked, and what it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.answer: Any = None
        self.refusal: Refusal | None = None
        monkeypatch.setattr(each_partition, "pass_on", self.pass_on)

    async def pass_on(self, neighbours: Neighbours, address: Advertised, method: str, path: str, body: bytes = b"") -> Any:
        self.asked.append((method, address.http_url + path, body))
        if self.refusal is not None:
            raise self.refusal
        return self.answer


async def parted(world: AdminWorld) -> Any:
    """Three partitions with the subscription `s` and two messages each; this broker keeps the first."""
    await world.done("PUT", "t/partitions", 3)
    await world.done("PUT", "t/subscription/s", {"ledgerId": -1, "entryId": -1})
    for index in range(3):
        topic = await world.loaded(f"{NAME}/t-partition-{index}")
        await topic.ledger.append(send_run(range(2), [payload(publish_time=1000 * (at + 1)) for at in range(2)]).entries)
    await settle()
    world.service.lookup.owners = OwnerOfTheFirst()
    return await world.loaded(f"{NAME}/t-partition-0")


def backlog(topic: Any) -> int:
    return int(topic.stats().subscriptions["s"].msg_backlog)


@pytest.mark.parametrize(
    ("method", "tail", "body", "status", "left"),
    [
        ("POST", "subscription/s/skip_all", None, 204, 0),
        ("POST", "subscription/s/expireMessages/5?authoritative=false", None, 204, 0),
        ("POST", "all_subscription/expireMessages/5", None, 204, 0),
        ("POST", "subscription/s/resetcursor/2000", None, 204, 1),
        ("DELETE", "truncate", None, 204, 0),
        ("POST", "trim", None, 200, 2),
        ("PUT", "subscription/s/properties", {"a": "b"}, 204, 2),
    ],
)
def test_each_broker_does_its_own_partitions(
    method: str, tail: str, body: Any, status: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Elsewhere(monkeypatch)

    async def scenario(world: AdminWorld) -> None:
        topic = await parted(world)
        answer = await world.topic(method, f"t/{tail}", body)
        assert (answer.status, answer.body) == (status, b"")
        sent = b"" if body is None else b'{"a": "b"}'
        assert other.asked == [(method, THERE.format(index) + tail, sent) for index in (1, 2)]
        assert backlog(topic) == left
        assert topic.operations.subscription_properties("s") == (body or {})

    play(scenario)


def test_a_subscription_is_made_listed_and_deleted_wherever_the_partitions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Elsewhere(monkeypatch)

    async def scenario(world: AdminWorld) -> None:
        topic = await parted(world)
        await world.done("PUT", "t/subscription/new", {"ledgerId": -1, "entryId": -1})
        assert topic.operations.has_subscription("new")
        place = b'{"ledgerId": -1, "entryId": -1}'
        assert other.asked == [("PUT", THERE.format(index) + "subscription/new", place) for index in (1, 2)]
        other.refusal = Refusal(409, "Subscription already exists for topic")
        assert (await world.topic("PUT", "t/subscription/new")).refused == (409, "Subscription already exists for topic")
        await world.done("PUT", "t/subscription/here-alone")
        other.refusal, other.answer = None, ["s", "there-alone"]
        assert (await world.topic("GET", "t/subscriptions")).json == ["here-alone", "new", "s", "there-alone"]
        other.refusal = Refusal(404, "Subscription new not found")
        await world.done("DELETE", "t/subscription/new?force=true")
        assert not topic.operations.has_subscription("new")
        assert other.asked[-1] == ("DELETE", THERE.format(2) + "subscription/new?force=true", b"")
        assert (await world.topic("DELETE", "t/subscription/new")).refused == (404, "Subscription not found")
        other.refusal = Refusal(412, "Subscription has active connected consumers")
        assert (await world.topic("DELETE", "t/subscription/s")).status == 412

    play(scenario)


def test_properties_are_gathered_and_the_last_messages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Elsewhere(monkeypatch)

    async def scenario(world: AdminWorld) -> None:
        await parted(world)
        other.answer = {"there": "1"}
        assert (await world.topic("GET", "t/subscription/s/properties")).json == {"there": "1"}
        other.answer = {"ledgerId": 7, "entryId": 1, "partitionIndex": 2}
        told = (await world.topic("POST", "t/terminate/partitions")).json
        assert sorted(told) == ["0", "2"]
        assert other.asked[-1] == ("POST", THERE.format(2) + "terminate", b"")

    play(scenario)


def test_expiry_is_409_if_no_partition_has_anything_to_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Elsewhere(monkeypatch)

    async def scenario(world: AdminWorld) -> None:
        await parted(world)
        await world.done("POST", "t/subscription/s/skip_all")
        await world.done("POST", "t/subscription/s/expireMessages/5")
        other.refusal = Refusal(409, "nothing there")
        assert (await world.topic("POST", "t/subscription/s/expireMessages/5")).status == 409

    play(scenario)


ANSWERS = [
    (b"HTTP/1.1 204 No Content\r\n\r\n", None),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n["s"]', ["s"]),
    (b'HTTP/1.1 412 P\r\nContent-Length: 14\r\n\r\n{"reason":"x"}', (412, "x")),
    (b'HTTP/1.1 404 N\r\nContent-Length: 17\r\n\r\n{"reason":"gone"}', (404, "gone")),
    (b"HTTP/1.1 401 U\r\nContent-Length: 0\r\n\r\n", (500, "brokerClientAuthenticationPlugin")),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", (500, "no JSON")),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_a_request_is_passed_on_with_its_body_and_refused_as_it_was_refused_there(answer: bytes, expected: Any) -> None:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        heard.append(await reader.readexactly(4))
        writer.write(answer)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        here = Advertised("", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            if isinstance(expected, tuple):
                with pytest.raises(Refusal, match=expected[1]) as refused:
                    await pass_on(Neighbours(), here, "PUT", "/a?b=c", b"body")
                assert refused.value.status == expected[0]
            else:
                assert await pass_on(Neighbours(), here, "PUT", "/a?b=c", b"body") == expected
        finally:
            server.close()
            await server.wait_closed()

    asyncio.run(scenario())
    assert heard[0].startswith(b"PUT /a?b=c HTTP/1.1\r\n")
    assert b"Content-Length: 4\r\nConnection: close\r\nContent-Type: application/json\r\n" in heard[0]
    assert heard[1] == b"body"
