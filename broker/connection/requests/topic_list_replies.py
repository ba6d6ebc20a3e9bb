"""The commands with lists of topics in them, as frames, written in slices: one with 100,000 names has some six megabytes.

Protobuf reads messages that are written one after the other as one, with their lists joined: so a list is encoded some names
at a time, and no turn of the loop has more than NAMES_PER_SLICE of them. The frame is what `wire.frames.encode` would give.
"""

from collections.abc import AsyncIterator, Callable, Sequence

from google.protobuf.message import Message

from ports.loop.slices import in_slices
from wire.frames import joined
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...service.catalogue.topic_lists import NAMES_PER_SLICE


async def topics_of_namespace(
    request_id: int, topics: Sequence[str], topics_hash: str, *, filtered: bool, changed: bool
) -> bytes:
    made = api.CommandGetTopicsOfNamespaceResponse
    parts = [made(request_id=request_id).SerializeToString()]
    parts += [part async for part in _encoded(topics, lambda names: made(topics=names))]
    parts.append(made(filtered=filtered, topics_hash=topics_hash, changed=changed).SerializePartialToString())
    return joined(BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, "get_topics_of_namespace_response", parts)


async def watch_topic_list_success(request_id: int, watcher_id: int, topics: Sequence[str], topics_hash: str) -> bytes:
    made = api.CommandWatchTopicListSuccess
    parts = [made(request_id=request_id, watcher_id=watcher_id).SerializePartialToString()]
    parts += [part async for part in _encoded(topics, lambda names: made(topic=names))]
    parts.append(made(topics_hash=topics_hash).SerializePartialToString())
    return joined(BaseCommand.WATCH_TOPIC_LIST_SUCCESS, "watch_topic_list_success", parts)


async def watch_topic_update(watcher_id: int, new: Sequence[str], deleted: Sequence[str], topics_hash: str) -> bytes:
    made = api.CommandWatchTopicUpdate
    parts = [made(watcher_id=watcher_id).SerializePartialToString()]
    parts += [part async for part in _encoded(new, lambda names: made(new_topics=names))]
    parts += [part async for part in _encoded(deleted, lambda names: made(deleted_topics=names))]
    parts.append(made(topics_hash=topics_hash).SerializePartialToString())
    return joined(BaseCommand.WATCH_TOPIC_UPDATE, "watch_topic_update", parts)


async def _encoded(names: Sequence[str], message: Callable[[Sequence[str]], Message]) -> AsyncIterator[bytes]:
    async for at in in_slices(range(0, len(names), NAMES_PER_SLICE), 1):
        yield message(names[at : at + NAMES_PER_SLICE]).SerializePartialToString()
