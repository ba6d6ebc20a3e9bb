"""Stats of a partitioned topic whose partitions are served by several brokers: one answer, and no circle of redirects."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.admin.rest import each_partition
from broker.admin.rest.answers import Refusal
from broker.admin.rest.elsewhere import REDIRECTS_MAX, ask_json
from broker.service.addresses import Advertised, Answer
from broker.service.neighbours.neighbours import Neighbours
from broker.service.ownership.owners import SoleOwner
from broker.service.topic_name import TopicName
from tests.broker.admin.admin_world import NAME, AdminWorld, play

OTHER = Answer(Advertised("pulsar://other:6650", "http://other:8080"))


class OwnerOfTheFirst(SoleOwner):
    """`Owners` of a broker that serves one partition and beside which another has the rest."""

    def serves(self, topic: TopicName) -> bool:
        return topic.partition_index <= 0

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        return None if self.serves(topic) else OTHER


def test_partitions_of_other_brokers_are_asked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def there(neighbours: Neighbours, address: Advertised, path: str) -> Any:
        asked.append(address.http_url + path)
        if "partition-2" in path:
            return None
        sub = {"msgBacklog": 4, "type": "Shared", "durable": True}
        return {"msgInCounter": 5, "bytesInCounter": 50, "msgRateIn": 1.5, "subscriptions": {"s": sub}}

    monkeypatch.setattr(each_partition, "ask_json", there)

    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t/partitions", 3)
        for index in range(3):
            await world.loaded(f"{NAME}/t-partition-{index}")
        await world.done("PUT", "t-partition-0/subscription/s", None)
        world.service.lookup.owners = OwnerOfTheFirst()
        answer = await world.topic("GET", "t/partitioned-stats")
        assert answer.status == 200
        assert asked == [f"http://other:8080/admin/v2/persistent/public/default/t-partition-{index}/stats" for index in (1, 2)]
        assert list(answer.json["partitions"]) == [f"{NAME}/t-partition-0", f"{NAME}/t-partition-1"]
        assert (answer.json["msgInCounter"], answer.json["averageMsgSize"], answer.json["msgRateIn"]) == (5, 10.0, 1.5)
        assert answer.json["subscriptions"]["s"]["msgBacklog"] == 4

    play(scenario)


def answering(*answers: bytes) -> "Callable[[Callable[[str], Any]], None]":
    """Runs what asks, with the URL of a server that gives these answers one after the other."""

    def run(ask: Callable[[str], Any]) -> None:
        async def whole() -> None:
            left = list(answers)

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(left.pop(0).replace(b"HERE", here.encode()))
                writer.close()

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            here = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            try:
                await ask(here)
            finally:
                server.close()
                await server.wait_closed()

        asyncio.run(whole())

    return run


SENT_ON = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: HERE/b?c=d\r\nContent-Length: 0\r\n\r\n"
FOUND = b'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{"a":1}'


def test_an_answer_is_taken_from_wherever_it_is_and_what_is_missing_is_none() -> None:
    async def ask(url: str) -> None:
        assert await ask_json(Neighbours(), Advertised("", url), "/a") == {"a": 1}
        assert await ask_json(Neighbours(), Advertised("", url), "/a") is None

    answering(SENT_ON, FOUND, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")(ask)


@pytest.mark.parametrize(
    "answers",
    [
        [SENT_ON] * REDIRECTS_MAX,
        [b""],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n" + b"".join(b"h%d: v\r\n" % index for index in range(100)) + b"\r\n{}"],
        [b"HTTP/1.1 500 Internal\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 307 T\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"],
    ],
    ids=["circle", "nothing", "cut off", "no JSON", "too large", "endless", "error", "elsewhere"],
)
def test_any_other_answer_of_another_broker_is_reported_as_its_failure(answers: list[bytes]) -> None:
    async def ask(url: str) -> None:
        with pytest.raises(Refusal) as refused:
            await ask_json(Neighbours(), Advertised("", url), "/a")
        assert refused.value.status == 500

    answering(*answers)(ask)
