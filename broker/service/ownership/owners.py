"""Owners: brokers that serve topics. This broker is the owner in a standalone; `ownership_driver` finds it in a cluster."""

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
        """None: this broker serves it, also because it has just been asked. `authoritative`: the broker that redirected the
        client chose this one, if the bundle has no owner.
        """

    async def unload(self, namespace: NamespaceName, bundle_range: str, destination: str = "") -> Answer | None:
        """Releases the bundle, with its topics; returns its owner if that is not this broker. BundleNotFound.
        `destination`: as `wish`, without a notice to the owner.
        """

    async def wish(self, namespace: NamespaceName, bundle_range: str, destination: str) -> None:
        """Makes the broker of that id the next owner of the bundle, independently of its present owner. BundleNotFound,
        NoSuchBroker.
        """

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        """Cuts the bundle by these boundaries of its namespace, and with `unload` releases the parts. As `unload`
        otherwise; raises the refusals of `cuts`.
        """

    async def owner(self, topic: TopicName) -> Answer | None:
        """The other broker that owns the topic's bundle now, if one does. No broker is asked to take it."""

    async def take_over(self, topic: TopicName) -> None:
        """A client has come here with the topic, without a lookup: serve it, if a wish names this broker, as soon as its
        owner has released it. Returns when that is done, or impossible, within seconds.
        """

    def heir(self, topic: TopicName) -> Advertised | None:
        """Returns the next owner of a topic that is being given up here, if it is known."""

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        """Returns the bundles of the namespace; None where ownership is not by bundles."""

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
        """A standalone has no other owner to take it from."""

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
        """Made at its first use: other owners know bundles in a cluster."""
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
