"""GET_TOPICS_OF_NAMESPACE and WATCH_TOPIC_LIST as clients with patterns use them."""

import asyncio
from typing import Any

import pytest

from broker.service.catalogue.topic_lists import topics_hash
from broker.service.catalogue.topic_watchers import NOTICE_SECONDS
from broker.service.settings import BrokerSettings
from broker.service.topic_name import NamespaceName
from tests.broker.connection.peer import TOPIC, Peer, a_peer, play, settle
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand


def topics(**fields: Any) -> BaseCommand:
    asked = api.CommandGetTopicsOfNamespace(**{"request_id": 1, "namespace": "public/default", **fields})
    return BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE, get_topics_of_namespace=asked)


def watch(pattern: str, **fields: Any) -> BaseCommand:
    asked = {"request_id": 2, "watcher_id": 3, "namespace": "public/default", "topics_pattern": pattern, **fields}
    return BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST, watch_topic_list=api.CommandWatchTopicList(**asked))


def unwatch(watcher_id: int = 3) -> BaseCommand:
    asked = api.CommandWatchTopicListClose(request_id=4, watcher_id=watcher_id)
    return BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST_CLOSE, watch_topic_list_close=asked)


async def make(peer: Peer, *names: str) -> list[str]:
    full = [f"persistent://public/default/{name}" for name in names]
    for number, name in enumerate(full):
        await peer.produce(100 + number + len(peer.topics.topics), name)
    return full


def test_all_topics_of_a_namespace_with_their_hash() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            names = await make(peer, "b", "a")
            found = (await peer.ask(topics())).get_topics_of_namespace_response
            assert list(found.topics) == sorted(names)
            assert (found.filtered, found.changed, found.topics_hash) == (False, True, await topics_hash(names))
            known = (await peer.ask(topics(topics_hash=found.topics_hash))).get_topics_of_namespace_response
            assert (list(known.topics), known.changed) == ([], False)
            gone = topics(mode=api.CommandGetTopicsOfNamespace.NON_PERSISTENT)
            assert list((await peer.ask(gone)).get_topics_of_namespace_response.topics) == []

    play(scenario)


@pytest.mark.parametrize(
    ("pattern", "filtered", "names"),
    [
        ("public/default/a.*", True, ["a", "ab"]),
        ("persistent://public/default/a", True, ["a"]),
        ("public/default/(a|c)", True, ["a", "c"]),
        ("(?=a).*", False, ["a", "ab", "c"]),
        ("[", False, ["a", "ab", "c"]),
        ("public/default/" + "a" * 60, False, ["a", "ab", "c"]),
    ],
)
def test_a_pattern_is_evaluated_here_or_left_to_the_client(pattern: str, filtered: bool, names: list[str]) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await make(peer, "a", "ab", "c")
            found = (await peer.ask(topics(topics_pattern=pattern))).get_topics_of_namespace_response
            assert (found.filtered, list(found.topics)) == (filtered, [f"persistent://public/default/{each}" for each in names])

    play(scenario)


@pytest.mark.parametrize("mode", api.CommandGetTopicsOfNamespace.Mode.values())
def test_a_namespace_that_is_not_there_has_no_topics(mode: api.CommandGetTopicsOfNamespace.Mode) -> None:
    """An error would make clients ask again for 30 s."""

    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(topics(namespace="a/b", mode=mode))).get_topics_of_namespace_response
            assert (list(found.topics), found.changed, found.topics_hash) == ([], True, await topics_hash([]))

    play(scenario)


def test_a_topic_list_of_an_invalid_namespace_is_refused() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            assert (await peer.ask(topics(namespace="nowhere"))).error.error == api.InvalidTopicName

    play(scenario)


def test_a_watcher_of_a_namespace_that_is_made_later_hears_of_its_topics() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(watch("public/later/.*", namespace="public/later"))).watch_topic_list_success
            assert (list(found.topic), found.topics_hash) == ([], await topics_hash([]))
            await peer.service.catalogue.namespaces.create(NamespaceName("public", "later"), "standalone", 4)
            await peer.produce(1, "persistent://public/later/t")
            await asyncio.sleep(2 * NOTICE_SECONDS)
            (told,) = peer.answers()
            assert list(told.watch_topic_update.new_topics) == ["persistent://public/later/t"]

    play(scenario)


def test_a_watcher_hears_of_topics_that_come_and_go() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            names = await make(peer, "a")
            found = (await peer.ask(watch("public/default/a.*"))).watch_topic_list_success
            assert (found.request_id, found.watcher_id, list(found.topic)) == (2, 3, names)
            assert found.topics_hash == await topics_hash(names)
            await make(peer, "ab", "c", "ac")
            await asyncio.sleep(1)
            update = (await peer.answer()).watch_topic_update
            new = ["persistent://public/default/ab", "persistent://public/default/ac"]
            assert (update.watcher_id, list(update.new_topics), list(update.deleted_topics)) == (3, new, [])
            assert update.topics_hash == await topics_hash([*names, *new])
            await peer.topics.store.delete("/managed-ledgers/public/default/persistent/a")
            await asyncio.sleep(1)
            update = (await peer.answer()).watch_topic_update
            assert (list(update.new_topics), list(update.deleted_topics)) == ([], names)

    play(scenario)


def test_a_watcher_that_asks_again_is_told_only_what_it_does_not_know() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            names = await make(peer, "a")
            first = (await peer.ask(watch(".*"))).watch_topic_list_success
            again = (await peer.ask(watch(".*", topics_hash=first.topics_hash))).watch_topic_list_success
            assert (list(again.topic), again.topics_hash) == ([], first.topics_hash)
            other = (await peer.ask(watch(".*", topics_hash="0"))).watch_topic_list_success
            assert list(other.topic) == names
            await make(peer, "b")
            await asyncio.sleep(1)
            assert len(peer.answers()) == 1

    play(scenario)


@pytest.mark.parametrize("by_leaving", [False, True])
def test_a_closed_watcher_hears_nothing_and_costs_nothing(by_leaving: bool) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.ask(watch(".*"))
            if by_leaving:
                peer.transport.close()
            else:
                assert (await peer.ask(unwatch())).success.request_id == 4
                assert (await peer.ask(unwatch())).success.request_id == 4
            await settle()
            assert not peer.service.catalogue._watchers._watchers
            assert not peer.service.catalogue._watchers._unwatch

    play(scenario)


def test_a_watcher_closed_or_asked_for_again_while_it_is_made_leaves_one_or_none() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(watch(".*", request_id=1))
            peer.send(watch(".*", request_id=2))
            await settle()
            assert [each.watch_topic_list_success.request_id for each in peer.answers()] == [1, 2]
            (watchers,) = peer.service.catalogue._watchers._watchers.values()
            assert len(watchers) == 1
            peer.send(watch(".*", request_id=5))
            peer.send(unwatch())
            peer.send(watch("[", watcher_id=9))
            await settle()
            assert not peer.service.catalogue._watchers._watchers
            assert not peer.connection._topic_lists._asked

    play(scenario)


def test_a_watcher_that_cannot_be_is_refused_so_that_the_client_polls() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(watch("(?=a).*"))).error
            assert (found.request_id, found.error) == (2, api.NotAllowedError)
        async with a_peer(BrokerSettings(enable_broker_topic_list_watcher=False)) as peer:
            assert (await peer.ask(watch(".*"))).error.error == api.NotAllowedError

    play(scenario)


def test_system_topics_are_not_listed() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.ask(watch(".*"))
            await peer.topics.store.put("/managed-ledgers/public/default/persistent/__transaction_buffer_snapshot", b"")
            await make(peer, "t")
            await asyncio.sleep(1)
            update = (await peer.answer()).watch_topic_update
            assert list(update.new_topics) == [TOPIC]
            assert list((await peer.ask(topics())).get_topics_of_namespace_response.topics) == [TOPIC]

    play(scenario)
