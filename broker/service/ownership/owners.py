"""Owners: who serves a topic. In a standalone this broker does; in a cluster `ownership_driver` finds out."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from metadata.store import MetadataStore

from ...errors import BrokerError, ServerError
from ..addresses import Advertised, Answer
from ..catalogue.namespaces import policies_path
from ..errors import BundleNotFound
from ..topic_name import NamespaceName, TopicName
from .bundles import HASH_MAX, Bundle, Bundles
from .namespace_bundles import NamespaceBundles


class Owners(Protocol):
    """Owners of topics and bundles, as the broker service needs them. BrokerError, MetadataError."""

    def serves(self, topic: TopicName) -> bool:
        """Whether this broker may serve the topic, at this moment."""

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        """None: this broker serves it, also because it has just been asked. `authoritative`: whoever sent the client here
        chose this broker, if nobody owns the bundle."""

    async def unload(self, namespace: NamespaceName, bundle_range: str, destination: str = "") -> Answer | None:
        """Give the bundle up, with its topics; returns who owns it instead, when it is not this broker. BundleNotFound.

        `destination`: as `wish`, of which the owner need not be told."""

    async def wish(self, namespace: NamespaceName, bundle_range: str, destination: str) -> None:
        """The broker of that id is to serve the bundle next, whoever does now. BundleNotFound, NoSuchBroker."""

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        """Cut the bundle by these boundaries of its namespace, and with `unload` give the parts up. As `unload` otherwise;
        whatever `cuts` refuses with."""

    async def owner(self, topic: TopicName) -> Answer | None:
        """The other broker that owns the topic's bundle now, if one does. Nobody is asked to take it."""

    async def take_over(self, topic: TopicName) -> None:
        """A client has come here with it, unasked: if somebody wished for this broker, serve it as soon as its owner has given
        it up. Returns when that is so, or cannot be, within seconds."""

    def heir(self, topic: TopicName) -> Advertised | None:
        """Returns the next owner of a topic that is being given up here, if it is known."""

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        """Returns the bundles of the namespace; None where bundles are not what is owned."""

    async def close(self) -> None:
        """Give up everything."""


class SoleOwner:
    """`Owners` of a broker that has no others beside it: it serves everything, and has no bundles to give up."""

    def serves(self, topic: TopicName) -> bool:
        return True

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        return None

    async def unload(self, namespace: NamespaceName, bundle_range: str, destination: str = "") -> Answer | None:
        return None

    async def wish(self, namespace: NamespaceName, bundle_range: str, destination: str) -> None:
        """There is no other."""

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        raise BrokerError(ServerError.NOT_ALLOWED, "A broker that serves everything has no bundles to split")

    async def owner(self, topic: TopicName) -> Answer | None:
        return None

    async def take_over(self, topic: TopicName) -> None:
        """There is nobody to take it from."""

    def heir(self, topic: TopicName) -> Advertised | None:
        return None

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        return None

    async def close(self) -> None:
        return None


class OwnerOfAll(SoleOwner):
    """`Owners` of a standalone: it serves every bundle, and cuts namespaces as a broker of a cluster does."""

    def __init__(
        self,
        store: MetadataStore,
        bundles_default: int,
        close_topics: Callable[[Callable[[TopicName], bool]], Awaitable[None]],
    ) -> None:
        """`close_topics`: of these names nothing is served when it returns."""
        self._store, self._bundles_default, self._close_topics = store, bundles_default, close_topics
        self._known: NamespaceBundles | None = None

    @property
    def _bundles(self) -> NamespaceBundles:
        """Made when it is asked for first: where others are beside this broker, somebody else knows of bundles."""
        if self._known is None:
            self._known = NamespaceBundles(self._store, self._bundles_default)
        return self._known

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        """A namespace without policies, such as the one of a broker's heartbeat, is one bundle."""
        if not await self._store.exists(policies_path(namespace)):
            return Bundles(namespace, (0, HASH_MAX))
        return await self._bundles.of(namespace)

    async def unload(self, namespace: NamespaceName, bundle_range: str, destination: str = "") -> Answer | None:
        _, bundle = await self._named(namespace, bundle_range)
        await self._close_topics(bundle.covers)
        return None

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        cut, bundle = await self._named(namespace, bundle_range)
        await self._bundles.replace(cut, tuple(cuts(cut, bundle)))
        if unload:
            await self._close_topics(bundle.covers)
        return None

    async def _named(self, namespace: NamespaceName, bundle_range: str) -> tuple[Bundles, Bundle]:
        cut = await self.cut(namespace)
        bundle = None if cut is None else cut.named(bundle_range)
        if cut is None or bundle is None:
            raise BundleNotFound(str(namespace), bundle_range)
        return cut, bundle

    async def close(self) -> None:
        if self._known is not None:
            self._known.close()
