"""Lookup: the broker that serves a topic, and the addresses of this broker and of its neighbours. Loads no topic.

Ownership of bundles is `Owners`'. The number of lookups at a time is limited (maxConcurrentLookupRequest; Apache:
BrokerService.getLookupRequestSemaphore): clients back off when they are refused.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..errors import BrokerError, ServerError
from ..meters import BrokerMeters
from .addresses import Advertised, Answer, address_for, broker_id, parse_listeners
from .catalogue.catalogue import Catalogue
from .catalogue.topic_kinds import require_kind
from .errors import TooManyLookups, TopicElsewhere
from .neighbours.neighbours import Neighbours
from .ownership.owners import Owners, SoleOwner
from .settings import BrokerSettings
from .topic_name import TopicName


def heartbeat_topic(advertised: Advertised) -> TopicName:
    """Returns the topic of a broker's health check. The topic is part of no bundle and served by its broker alone."""
    return TopicName.parse(f"persistent://pulsar/{broker_id(advertised)}/healthcheck")


class Lookup:
    """Lookups on one broker. Before `start` the broker has no addresses and owns everything."""

    def __init__(self, settings: BrokerSettings, catalogue: Catalogue, neighbours: Neighbours, meters: BrokerMeters) -> None:
        self.neighbours = neighbours
        self.owners: Owners = SoleOwner()
        self._settings, self._catalogue, self._meters = settings, catalogue, meters
        self._advertised: Advertised | None = None
        self._listeners: Mapping[str, Advertised] = {}

    def start(self, advertised: Advertised, owners: Owners) -> None:
        """Sets the addresses at which clients reach this broker, and the owners of bundles."""
        self._listeners = parse_listeners(self._settings.advertised_listeners, advertised)
        self._advertised, self.owners = advertised, owners

    async def close(self) -> None:
        """Gives up all bundles."""
        await self.owners.close()

    @property
    def advertised(self) -> Advertised:
        """Addresses of this broker. BrokerError(SERVICE_NOT_READY) before `start`."""
        if self._advertised is None:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is starting")
        return self._advertised

    async def find(self, topic: TopicName, listener: str = "", *, authoritative: bool = False) -> Answer:
        """Returns the broker that serves the topic, or one that knows it. The topic need not exist, its namespace must."""
        require_kind(self._settings, topic)
        if self._catalogue.loaded_topic(topic) is None:  # a topic that is loaded here is answered without metadata, too
            await self._catalogue.namespaces.require(topic.namespace)
        found = await self.owners.find(topic, listener, authoritative=authoritative)
        return found or Answer(address_for(listener, self.advertised, self._listeners))

    def heir(self, topic: TopicName) -> Advertised | None:
        """Returns the next owner of a topic whose clients are disconnected, if it is known. None where listeners are
        configured: a client names its listener in lookups only."""
        return None if self._listeners else self.owners.heir(topic)

    def serves(self, topic: TopicName) -> bool:
        """Whether this broker may serve the topic at this moment."""
        return self.owners.serves(topic) or topic == heartbeat_topic(self.advertised)

    def require_owned(self, topic: TopicName) -> None:
        """Raises TopicElsewhere for a topic that this broker may not serve."""
        if not self.serves(topic):
            raise TopicElsewhere(str(topic), self.advertised.http_url)

    @contextmanager
    def pending(self) -> Iterator[None]:
        """Counts a lookup from its request to its answer. TooManyLookups."""
        if self._meters.lookups_pending >= self._settings.max_concurrent_lookup_request:
            raise TooManyLookups
        self._meters.lookups_pending += 1
        try:
            yield
        finally:
            self._meters.lookups_pending -= 1
