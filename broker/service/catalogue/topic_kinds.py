"""The two kinds of topics, persistent and not, as far as the broker service tells them apart."""

from collections.abc import Iterable

from ports.loop.slices import in_slices

from ...errors import BrokerError, ServerError
from ..settings import BrokerSettings
from ..topic_name import NamespaceName, TopicName
from .topic_lists import NAMES_PER_SLICE


def require_kind(settings: BrokerSettings, topic: TopicName) -> None:
    """BrokerError(NOT_ALLOWED) where the broker does not serve topics of that kind (BrokerService.getTopic)."""
    if not (settings.enable_persistent_topics if topic.is_persistent else settings.enable_non_persistent_topics):
        key = "enablePersistentTopics" if topic.is_persistent else "enableNonPersistentTopics"
        message = f"Broker is unable to load {topic.domain} topic: {topic} ({key} is false)"
        raise BrokerError(ServerError.NOT_ALLOWED, message)


def require_openable(topic: TopicName) -> None:
    """BrokerError(NOT_ALLOWED) for topics that no client may open: opened as a topic, a log would be taken from its
    coordinator (BrokerService.createPersistentTopic0)."""
    if topic.is_of_transactions:
        raise BrokerError(ServerError.NOT_ALLOWED, f"Can not create transaction system topic {topic}")


async def persistent_of(namespace: NamespaceName, encoded: Iterable[str], *, system_topics: bool) -> list[TopicName]:
    """Topics that have these names in metadata, in slices."""
    found = list[TopicName]()
    async for name in in_slices(encoded, NAMES_PER_SLICE):
        topic = TopicName.of_metadata("persistent", namespace, name)
        if system_topics or not topic.is_system:
            found.append(topic)
    return found


async def non_persistent_of(namespace: NamespaceName, loaded: Iterable[str]) -> list[TopicName]:
    """Topics with these full names, in slices."""
    start = f"non-persistent://{namespace}/"
    return [TopicName.parse(name) async for name in in_slices(loaded, NAMES_PER_SLICE) if name.startswith(start)]
