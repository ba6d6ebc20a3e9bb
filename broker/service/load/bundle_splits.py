"""BundleSplits: splits a bundle of this broker, for an operator or because of its load. Owns nothing: the service gives the
topics and their load, `Owners.split` keeps the owner.
"""

from collections.abc import Sequence

from ports.loop.slices import in_slices

from ..addresses import Answer
from ..catalogue.catalogue import Catalogue
from ..catalogue.topic_lists import NAMES_PER_SLICE
from ..errors import BundleNotFound
from ..lookup import Lookup
from ..ownership.bundles import Bundle, Bundles, parse_range, topic_hash
from ..ownership.namespace_bundles import CutChanged
from ..topic_name import NamespaceName, TopicName
from .settings import LoadSettings
from .splitting import ALGORITHMS, SPECIFIED, BundleReplaced, CannotSplit, TopicLoad, at_positions, cut_boundaries

LARGEST = "LARGEST"
"""Instead of a range: the bundle of the namespace with the most topics."""
LARGEST_ATTEMPTS_MAX = 5
"""Each further one means that the namespace was cut otherwise since the largest was found."""


class UnsupportedAlgorithm(Exception):
    """No algorithm of this name is to be used here; says which ones are."""


class BundleSplits:
    """Splits of one broker."""

    def __init__(self, settings: LoadSettings, catalogue: Catalogue, lookup: Lookup) -> None:
        self._settings, self._catalogue, self._lookup = settings, catalogue, lookup
        self.done = self.failed = 0
        """Numbers of splits that succeeded and failed here, since the start."""

    async def split(
        self,
        namespace: NamespaceName,
        bundle_range: str,
        algorithm: str | None = None,
        positions: Sequence[int] = (),
        *,
        unload: bool = False,
    ) -> Answer | None:
        """Splits a bundle, like `Owners.split`. UnsupportedAlgorithm, CannotSplit, BundleNotFound."""
        name = algorithm or self._settings.default_namespace_bundle_split_algorithm
        supported = self._settings.supported_namespace_bundle_split_algorithms
        if name not in supported:
            raise UnsupportedAlgorithm(
                f"Unsupported namespace bundle split algorithm, supported algorithms are [{', '.join(supported)}]"
            )
        if bundle_range != LARGEST:
            return await self._split(
                namespace, bundle_range, name, positions, await self._catalogue.list_topics(namespace), unload=unload
            )
        for attempt in range(1, LARGEST_ATTEMPTS_MAX + 1):
            topics = await self._catalogue.list_topics(namespace)
            largest = await self._largest(namespace, topics)
            try:
                return await self._split(namespace, largest, name, positions, topics, unload=unload)
            except (BundleNotFound, BundleReplaced, CutChanged):
                if attempt == LARGEST_ATTEMPTS_MAX:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _split(
        self,
        namespace: NamespaceName,
        bundle_range: str,
        name: str,
        positions: Sequence[int],
        topics: Sequence[TopicName],
        *,
        unload: bool,
    ) -> Answer | None:
        held = [] if name == SPECIFIED else await self._held(parse_range(namespace, bundle_range), topics)

        def cuts(cut: Bundles, bundle: Bundle) -> Sequence[int]:
            inside = at_positions(bundle, positions) if name == SPECIFIED else ALGORITHMS[name](bundle, held)
            return cut_boundaries(cut.boundaries, bundle, inside, self._settings.load_balancer_namespace_maximum_bundles)

        self.failed += 1
        elsewhere = await self._lookup.owners.split(namespace, bundle_range, cuts, unload=unload)
        self.failed -= 1
        self.done += elsewhere is None
        return elsewhere

    async def _held(self, bundle: Bundle | None, topics: Sequence[TopicName]) -> list[TopicLoad]:
        """The loads of the topics in the bundle, in slices; none for an unknown bundle."""
        if bundle is None:
            return []
        return [self._load_of(topic) async for topic in in_slices(topics, NAMES_PER_SLICE) if bundle.covers(topic)]

    def _load_of(self, name: TopicName) -> TopicLoad:
        loaded = self._catalogue.loaded_topics.get(str(name))
        if loaded is None:
            return TopicLoad(topic_hash(str(name)), 0.0, 0.0)
        traffic = loaded.traffic()
        throughput = traffic.msg_throughput_in + traffic.msg_throughput_out
        return TopicLoad(topic_hash(str(name)), traffic.msg_rate_in + traffic.msg_rate_out, throughput)

    async def _largest(self, namespace: NamespaceName, topics: Sequence[TopicName]) -> str:
        cut = await self._lookup.owners.cut(namespace)
        if cut is None:
            raise BundleNotFound(str(namespace), LARGEST)
        counts: dict[Bundle, int] = {}
        async for topic in in_slices(topics, NAMES_PER_SLICE):
            counts[cut.of(topic)] = counts.get(cut.of(topic), 0) + 1
        if not counts:
            raise CannotSplit(f"{namespace} has no topics: there is no largest bundle")
        return max(counts, key=lambda bundle: (counts[bundle], -bundle.low)).range
