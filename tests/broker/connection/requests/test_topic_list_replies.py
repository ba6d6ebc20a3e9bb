"""Answers with very many topic names: the same bytes as if encoded at once, but encoded in slices."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.connection.requests import topic_list_replies as replies
from broker.service.catalogue.topic_lists import NAMES_PER_SLICE
from tests.broker.connection.peer import a_peer, play_for_real, settle
from tests.broker.connection.requests.test_topic_lists import topics, watch
from tests.cost import Counter
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

NAMES = st.lists(st.text("abä/", max_size=6), max_size=8)
LIST, SUCCESS, UPDATE = (
    BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    BaseCommand.WATCH_TOPIC_LIST_SUCCESS,
    BaseCommand.WATCH_TOPIC_UPDATE,
)


@given(NAMES, NAMES, st.integers(0, (1 << 64) - 1), st.booleans(), st.booleans(), st.integers(1, 3))
def test_a_list_in_slices_has_the_bytes_of_one_encoded_at_once(
    names: list[str], others: list[str], number: int, filtered: bool, changed: bool, at_a_time: int
) -> None:
    listed = api.CommandGetTopicsOfNamespaceResponse(
        request_id=number, topics=names, topics_hash="h", filtered=filtered, changed=changed
    )
    success = api.CommandWatchTopicListSuccess(request_id=number, watcher_id=7, topic=names, topics_hash="h")
    update = api.CommandWatchTopicUpdate(watcher_id=number, new_topics=names, deleted_topics=others, topics_hash="h")

    async def built() -> list[bytes]:
        return [
            await replies.topics_of_namespace(number, names, "h", filtered=filtered, changed=changed),
            await replies.watch_topic_list_success(number, 7, names, "h"),
            await replies.watch_topic_update(number, names, others, "h"),
        ]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replies, "NAMES_PER_SLICE", at_a_time)
        assert asyncio.run(built()) == [
            encode(BaseCommand(type=LIST, get_topics_of_namespace_response=listed)),
            encode(BaseCommand(type=SUCCESS, watch_topic_list_success=success)),
            encode(BaseCommand(type=UPDATE, watch_topic_update=update)),
        ]


def _names(count: int) -> list[str]:
    return [f"persistent://public/default/{number}" for number in range(count)]


BUILT: dict[str, Callable[[Sequence[str]], Awaitable[bytes]]] = {
    "a list": lambda names: replies.topics_of_namespace(1, names, "h", filtered=False, changed=True),
    "a watcher's first list": lambda names: replies.watch_topic_list_success(1, 2, names, "h"),
    "new topics": lambda names: replies.watch_topic_update(1, names, (), "h"),
    "deleted topics": lambda names: replies.watch_topic_update(1, (), names, "h"),
}


@pytest.mark.parametrize("what", BUILT)
def test_a_turn_of_the_loop_encodes_some_of_the_names(what: str) -> None:
    names = _names(16 * NAMES_PER_SLICE)

    async def longest() -> float:
        with Counter() as counter:
            await BUILT[what](names)
        return counter.longest / counter.steps

    assert asyncio.run(longest()) < 1 / 8


@pytest.mark.parametrize("asked", [topics(), watch(".*")], ids=["a list", "a watcher"])
def test_a_client_is_told_of_all_topics_in_slices(asked: BaseCommand) -> None:
    """Slices all the way from the names in metadata to the frame."""

    async def turns(count: int) -> tuple[int, int]:
        found = (0, 0)
        async with a_peer() as peer:
            for number in range(count):
                await peer.topics.store.put(f"/managed-ledgers/public/default/persistent/t{number}", b"")
            with Counter() as counter:
                peer.send(asked)
                for _ in range(count // 50):
                    await settle()
            found = (counter.longest, counter.steps)
            (answer,) = peer.answers()
            told = answer.get_topics_of_namespace_response.topics or answer.watch_topic_list_success.topic
            assert len(told) == count
        return found

    found = list[tuple[int, int]]()

    async def scenario() -> None:
        found.append(await turns(16 * NAMES_PER_SLICE))

    play_for_real(scenario)
    ((longest, steps),) = found
    assert longest < steps / 16, f"{longest} of {steps} in one turn"
