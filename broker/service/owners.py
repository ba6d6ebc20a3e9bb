"""Owners: who serves a topic. In a standalone this broker does; in a cluster `ownership_driver` finds out."""

from typing import Protocol

from .lookups import Answer
from .topic_name import NamespaceName, TopicName


class Owners(Protocol):
    """What the broker service asks. BrokerError, MetadataError."""

    def serves(self, topic: TopicName) -> bool:
        """Whether this broker may serve the topic, at this moment."""

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        """None: this broker serves it, also because it has just been asked. `authoritative`: whoever sent the client here
        chose this broker, if nobody owns the bundle."""

    async def unload(self, namespace: NamespaceName, bundle_range: str) -> Answer | None:
        """Give the bundle up, with its topics; returns who owns it instead, when it is not this broker. BundleNotFound."""

    async def owner(self, topic: TopicName) -> Answer | None:
        """The other broker that owns the topic's bundle now, if one does. Nobody is asked to take it."""

    async def ranges(self, namespace: NamespaceName) -> list[str]:
        """Of the namespace's bundles."""

    async def close(self) -> None:
        """Give up everything."""


class SoleOwner:
    """`Owners` of a broker that has no others beside it: it serves everything, and has no bundles to give up."""

    def serves(self, topic: TopicName) -> bool:
        return True

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        return None

    async def unload(self, namespace: NamespaceName, bundle_range: str) -> Answer | None:
        return None

    async def owner(self, topic: TopicName) -> Answer | None:
        return None

    async def ranges(self, namespace: NamespaceName) -> list[str]:
        return []

    async def close(self) -> None:
        return None
