"""BrokerService: everything that a connection or the admin API asks of the broker as a whole.

Owns the loaded topics, the metadata of partitioned topics, lists of topics and their watchers, lookups, producers' names.
Never sees bytes, sockets or messages. Refusals are BrokerError (`errors.py` has those that the admin API tells apart).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from bookkeeper.ledgers import LedgerStore
from metadata.store import MetadataStore
from ports.clock import Clock
from ports.logs import line
from ports.loop.side_by_side import side_by_side
from ports.loop.slices import in_slices

from ..errors import BrokerError, ServerError
from ..meters import BrokerMeters
from ..policies.policies import AutoTopicCreation
from ..schema.registry import SchemaRegistry
from ..schema.storage import SchemaStorage
from ..topic.contract import OpenTopic, Topic
from .bookies_inside import BookieInside
from .catalogue.default_partitions import DefaultPartitions
from .catalogue.gone_namespaces import GoneNamespaces
from .catalogue.namespaces import Namespaces, listed
from .catalogue.partitions import PartitionedTopicMetadata, PartitionedTopics, check_not_deleted
from .catalogue.passing_topics import PassingTopics
from .catalogue.topic_kinds import non_persistent_of, persistent_of, require_kind
from .catalogue.topic_lists import NAMES_PER_SLICE, Pattern, matching, topics_hash
from .catalogue.topic_watchers import TopicListListener, TopicListWatcher, TopicWatchers, WatchedTopics
from .dynamic_configuration import DynamicConfiguration, DynamicSettings
from .errors import TopicConflict, TopicElsewhere, TopicNotFound
from .lifecycle.heartbeat import Heartbeat, heartbeat_topic
from .lifecycle.housekeeping import CheckUnused, Housekeeping
from .lifecycle.loaded_topics import LoadedTopics
from .lifecycle.partition_opening import PartitionOpening
from .lifecycle.partitioned_deletion import DeleteElsewhere, PartitionedDeletion
from .load.bundle_splits import BundleSplits
from .load.load_driver import LoadDriver
from .load.settings import LoadSettings
from .lookup.addresses import Advertised, Answer, address_for, parse_listeners
from .neighbours.neighbours import Neighbours
from .ownership.owners import OwnerOfAll, Owners
from .policies.policy_enforcement import PolicyEnforcement
from .policies.topic_policies import TopicPolicyDocuments
from .producer_names import ProducerNames
from .settings import BrokerSettings
from .system_topics.system_logs import SystemLogs, keep_what_is_not_compacted
from .topic_name import NamespaceName, TopicName, persistent_topics_path
from .topic_schemas import TopicSchemas

log = logging.getLogger(__name__)


async def _nothing(covers: Callable[[TopicName], bool]) -> None:
    """Nobody else has anything."""


class BrokerService:
    """One broker. `start` before anything else; `close` unloads everything."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: MetadataStore,
        clock: Clock,
        open_topic: OpenTopic,
        ledgers: LedgerStore,
        load_settings: LoadSettings | None = None,
        dynamic_settings: DynamicSettings | None = None,
    ) -> None:
        self.settings = settings
        self.meters = BrokerMeters()
        self.namespaces = Namespaces(store)
        self.dynamic_configuration = DynamicConfiguration(store, dynamic_settings, lambda: self.policies.settings_changed())
        self.partitioned_topics = PartitionedTopics(store, settings.max_num_partitions_per_partitioned_topic)
        self.system_logs = SystemLogs(self, self._load)
        self.topic_policies = TopicPolicyDocuments(store, settings.cluster_name, clock, self.system_logs.change_events)
        self.gone_namespaces = GoneNamespaces(lambda: self._topics.names())
        self.policies = PolicyEnforcement(
            store, settings.cluster_name, self.topic_policies, lambda: self._topics.all, self.gone_namespaces
        )
        self.namespace_policies = self.policies.namespaces
        self.clock = clock
        registry = SchemaRegistry(SchemaStorage(store, ledgers), clock)
        self.schemas = TopicSchemas(registry, settings, self.policies.said_of)
        self.gone_namespaces.listeners += [self.topic_policies.forget, lambda each: registry.meters.forget(str(each))]
        self._partitions = PartitionOpening(self.partitioned_topics, self.topic_exists, self._load, self._close)
        self._default_partitions = DefaultPartitions(self)
        self.deletion = PartitionedDeletion(self, self._forget)
        self._store = store
        self._open_topic = open_topic
        self._topics = LoadedTopics(
            self._open_by_policies, settings.max_concurrent_topic_load_request, settings.topic_load_timeout_seconds, self.meters
        )
        self._passing = PassingTopics(self.partitioned_topics, self._topics.settled, self._require_owned)
        self._watchers = TopicWatchers(store)
        self._housekeeping = Housekeeping(settings, self._topics.all, self._delete_inactive, self.meters)
        self._housekeeper: asyncio.Task[None] | None = None
        self._names: ProducerNames | None = None
        self._advertised: Advertised | None = None
        self._listeners: Mapping[str, Advertised] = {}
        self.heartbeat = Heartbeat(self._open_heartbeat, self.new_producer_name)
        self.owners: Owners = OwnerOfAll(store, settings.default_number_of_namespace_bundles, self.close_topics)
        self.load: LoadDriver | None = None
        self.on_topics_closed: Callable[[Callable[[TopicName], bool]], Awaitable[None]] = _nothing
        """Told with `close_topics`, of what somebody else has of these names; it does not fail."""
        self.neighbours = Neighbours()
        """Set by whoever made it, before it starts."""
        self.bookies_inside: Mapping[str, BookieInside] = {}
        """By name, those that hand over their files. Set by whoever made it, before it starts."""
        self.splits = BundleSplits(load_settings or LoadSettings(), lambda: self.owners, self.list_topics, self._topics.all)

    async def start(self, advertised: Advertised, owners: Owners | None = None) -> None:
        """Once it is known where clients reach this broker, and, where it has others beside it, who knows what they own.

        Its `load`, if it has one, is started and stopped by whoever made it."""
        await self.dynamic_configuration.start()
        self.owners = owners or self.owners
        self._listeners = parse_listeners(self.settings.advertised_listeners, advertised)
        self._advertised = advertised
        self._housekeeper = asyncio.create_task(self._housekeeping.run(), name="broker housekeeping")
        self._names = await ProducerNames.open(self._store, self.settings.cluster_name, self.clock.now_ms())

    async def bootstrap_standalone(self, advertised: Advertised) -> None:
        """The cluster, tenants and namespaces of a standalone, where they are missing."""
        await self.namespaces.bootstrap_standalone(
            self.settings.cluster_name,
            self.settings.default_number_of_namespace_bundles,
            advertised.http_url,
            advertised.broker_url,
        )

    async def close(self) -> None:
        """Unloads all topics; closing twice is fine."""
        self._watchers.close()
        await self.heartbeat.close()
        self.dynamic_configuration.close()
        self.policies.close()
        self.topic_policies.close()
        if self._housekeeper is not None:
            self._housekeeper.cancel()
            await asyncio.gather(self._housekeeper, return_exceptions=True)
            self._housekeeper = None
        await self.owners.close()
        for failure in await self._topics.close():
            log.error(line("a topic was not unloaded cleanly"), exc_info=failure)

    # ---- Lookup

    @property
    def is_started(self) -> bool:
        return self._names is not None

    @property
    def advertised(self) -> Advertised:
        if self._advertised is None:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is starting")
        return self._advertised

    async def lookup(self, topic: TopicName, listener: str = "", *, authoritative: bool = False) -> Answer:
        """Who serves the topic, or who knows. The topic need not exist, its namespace must."""
        require_kind(self.settings, topic)
        if self.loaded_topic(topic) is None:  # what is served here is answered without metadata, too
            await self.namespaces.require(topic.namespace)
        found = await self.owners.find(topic, listener, authoritative=authoritative)
        return found or Answer(address_for(listener, self.advertised, self._listeners))

    def heir(self, topic: TopicName) -> Advertised | None:
        """Where a client that is sent away from the topic finds it again without a lookup, if that is known; not where there
        are listeners, of which a client says with its lookups alone which one it is to be sent to."""
        return None if self._listeners else self.owners.heir(topic)

    def new_producer_name(self) -> str:
        if self._names is None:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is starting")
        return self._names.new()

    # ---- Topics

    @property
    def loaded_topics(self) -> Mapping[str, Topic]:
        """Read only."""
        return self._topics.all

    def loaded_topic(self, topic: TopicName) -> Topic | None:
        return self._topics.get(str(topic))

    async def topic(self, topic: TopicName, *, may_create: bool) -> Topic:
        """The topic, loaded; made when it is missing if the caller and the settings allow that (a partition: always)."""
        loaded = self._topics.get(str(topic))
        if loaded is not None and self.owners.serves(topic):
            return loaded
        require_kind(self.settings, topic)
        await self.namespaces.require(topic.namespace)
        found = await self.partitioned_topics.check_consistent(topic)
        if not self.owners.serves(topic):
            await self.owners.take_over(topic)
        if topic.is_partition:
            return await self._partitions.open(topic, found, may_create=may_create)
        return await self._load(topic, may_create and (await self._auto_creation(topic)).is_allowed)

    async def create_topic(self, topic: TopicName) -> Topic:
        """Of which there may be none yet, partitioned or not (TopicConflict). Not subject to auto-creation settings."""
        require_kind(self.settings, topic)
        await self.namespaces.require(topic.namespace)
        await self.partitioned_topics.check_consistent(topic)
        if await self.topic_exists(topic) or (await self.partitioned_topics.get(topic)).partitions:
            raise TopicConflict(str(topic))
        try:
            return await self._load(topic, True)
        except BrokerError:
            if (await self.partitioned_topics.get(topic)).partitions:  # somebody made that meanwhile
                raise TopicConflict(str(topic)) from None
            raise

    async def topic_exists(self, topic: TopicName) -> bool:
        """Whether there is a topic, loaded or stored, of exactly this name."""
        return self._topics.get(str(topic)) is not None or await self._store.exists(topic.managed_ledger_path)

    async def delete_topic(self, topic: TopicName, *, force: bool = False) -> None:
        """With its policies and schemas. TopicNotFound; BrokerError when it is in use and not `force`."""
        if not await self.topic_exists(topic):
            if not topic.is_persistent:
                self._require_owned(topic)  # elsewhere it may be loaded
            raise TopicNotFound(str(topic))
        await self._load(topic, False)
        await self._topics.remove(str(topic), lambda loaded: self._delete(topic, loaded, force=force))

    async def unload_topic(self, topic: TopicName) -> None:
        """Close it; the next who asks loads it again. TopicNotFound when it is not loaded."""
        if not await self._close(topic):
            raise TopicNotFound(str(topic))

    async def _close(self, topic: TopicName) -> bool:
        return await self._topics.remove(str(topic), lambda loaded: loaded.close())

    async def close_topics(self, covers: Callable[[TopicName], bool]) -> None:
        """Of these nothing is served when it returns, and nothing is being loaded."""
        known = in_slices(self._topics.names(), NAMES_PER_SLICE)
        names = [name async for name in known if covers(TopicName.parse(name))]
        ends = (self._topics.remove(name, lambda loaded: loaded.close()) for name in names)
        for name, failure in zip(names, await side_by_side(ends), strict=True):
            if isinstance(failure, BaseException):
                unforeseen = None if isinstance(failure, BrokerError) else failure
                log.error(line("a topic was not unloaded cleanly", topic=name, reason=failure), exc_info=unforeseen)
        await self.on_topics_closed(covers)

    async def list_topics(self, namespace: NamespaceName, *, system_topics: bool = False) -> list[TopicName]:
        """Persistent topics, partitions one by one, in the order of their encoded names."""
        await self.namespaces.require(namespace)
        names = await self._store.children(persistent_topics_path(namespace))
        return await persistent_of(namespace, names, system_topics=system_topics)

    async def list_non_persistent(self, namespace: NamespaceName) -> list[TopicName]:
        """Those that are loaded here: nothing else knows of them (getListOfNonPersistentTopics)."""
        await self.namespaces.require(namespace)
        return await non_persistent_of(namespace, list(self._topics.all))

    async def check_backlog_quotas(self) -> None:
        """Of all topics, now rather than at the next round."""
        await self._housekeeping.check_quotas()

    # ---- Partitioned topics

    async def partitions(self, topic: TopicName, *, may_create: bool) -> PartitionedTopicMetadata:
        """For PARTITIONED_METADATA: 0 partitions for a topic that is not partitioned, also for a partition.

        `may_create` lets a missing topic pass when topics are made automatically, and makes the metadata when such topics
        are partitioned; otherwise a missing topic is TopicNotFound.
        """
        require_kind(self.settings, topic)
        await self.namespaces.require(topic.namespace)
        found = await self.partitioned_topics.get(topic)
        check_not_deleted(topic, found)
        if found.partitions or await self._is_there(topic):
            return found
        creation = await self._auto_creation(topic)
        if not may_create or not creation.is_allowed:
            if not topic.is_persistent and not self._serves(topic):
                return found  # it may be there: its owner decides
            raise TopicNotFound(str(topic))
        if creation.partitions and not topic.is_partition:
            return await self._default_partitions.make(topic, creation.partitions)
        return found

    async def create_partitioned_topic(
        self, topic: TopicName, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """TopicConflict when there is a topic of that name, partitioned or not; BadPartitionCount. TopicElsewhere: of one that
        is not persistent only who serves it knows."""
        require_kind(self.settings, topic)
        await self.namespaces.require(topic.namespace)
        if topic.is_partition:
            raise BrokerError(ServerError.INVALID_TOPIC_NAME, f"{topic} has the name of a partition")
        if await self.topic_exists(topic):
            raise TopicConflict(str(topic))
        await self._require_room(topic.namespace, partitions)
        makes = self.partitioned_topics.create if topic.is_persistent else self._passing.create_partitioned
        await makes(topic, partitions, properties or {})

    async def delete_partitioned_topic(
        self, topic: TopicName, *, force: bool = False, elsewhere: DeleteElsewhere | None = None
    ) -> None:
        """See `PartitionedDeletion`. TopicNotFound; BrokerError when a partition is in use and not `force`."""
        await self.deletion.delete(topic, force=force, elsewhere=elsewhere)

    # ---- Watchers

    async def watch_topics(self, namespace: NamespaceName, pattern: Pattern, listener: TopicListListener) -> WatchedTopics:
        """The topics that match now; `listener` is told what changes from now on, once the watcher has begun."""
        watcher = TopicListWatcher(pattern, listener)
        unwatch = self._watchers.add(namespace, watcher)
        try:
            topics = await matching(await listed(self.list_topics(namespace)), pattern)
            return WatchedTopics(topics, await topics_hash(topics), lambda: watcher.begin(topics), unwatch)
        except BaseException:
            unwatch()
            raise

    # ---- Within

    async def _load(self, topic: TopicName, may_create: bool) -> Topic:
        self._require_owned(topic)
        if not topic.is_system:
            await self.topic_policies.load(topic.namespace)
        if may_create and not await self.topic_exists(topic):
            await self.namespaces.require_growing(topic.namespace)
            await self._require_room(topic.namespace, 1)
        return await self._topics.load(topic, create=may_create)

    async def _require_room(self, namespace: NamespaceName, more: int) -> None:
        said = (await self.policies.of_namespace(namespace)).max_topics
        limit = self.settings.max_topics_per_namespace if said is None else said
        if limit <= 0 or len(await self._store.children(persistent_topics_path(namespace))) + more <= limit:
            return
        if len(await self.list_topics(namespace)) + more > limit:
            raise BrokerError(ServerError.NOT_ALLOWED, f"Exceed maximum number of topics in namespace {namespace}: {limit}")

    async def _is_there(self, topic: TopicName) -> bool:
        """As a topic, or as a partition that was promised to be there."""
        if await self.topic_exists(topic):
            return True
        return topic.is_partition and topic.partition_index < (await self.partitioned_topics.get(topic.partitioned)).partitions

    async def _auto_creation(self, topic: TopicName) -> AutoTopicCreation:
        """Of a topic that is missing: the system's own always, others as their namespace says, or else the settings."""
        if topic.is_system:
            return AutoTopicCreation(True)
        said = (await self.policies.of_namespace(topic.namespace)).auto_topic_creation
        return said or self.settings.auto_topic_creation

    async def _open_by_policies(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> Topic:
        """The namespace's policies are in force before anybody gets to see the topic."""
        parsed = TopicName.parse(name)
        await self.policies.of_namespace(parsed.namespace)
        self._require_owned(parsed)
        topic = await self._open_topic(name, managed_ledger_name, partition_index, create=create)
        try:
            await self._passing.check_alone(parsed)
            self._require_owned(parsed)  # it may have been given up while it was opened
        except BrokerError:
            await topic.close()
            raise
        await keep_what_is_not_compacted(parsed, topic)
        self.policies.put_in_force(parsed, topic)
        return topic

    async def _delete_inactive(self, name: str, check: CheckUnused) -> None:
        topic = TopicName.parse(name)
        await self._topics.remove(name, lambda loaded: self._delete(topic, loaded, force=False, check=check))
        if topic.is_partition and self.settings.broker_delete_inactive_partitioned_topic_metadata_enabled:
            await self.deletion.delete_if_empty(topic.partitioned)

    async def _delete(self, topic: TopicName, loaded: Topic, *, force: bool, check: CheckUnused = lambda loaded: None) -> None:
        """With what is beside it, before anybody can make it again. `check` may refuse."""
        check(loaded)
        await loaded.delete(force=force)
        await self._forget(topic)

    async def _forget(self, topic: TopicName) -> None:
        """Its policies and schemas, so that the next topic of this name does not begin with them. A partition has none of its
        own: unlike in Apache the others keep their schema when one of them is deleted."""
        if not topic.is_partition and not topic.is_system:
            await self.topic_policies.remove(topic)
            twin = topic.of_other_kind  # which has the same schemas (TopicName.getSchemaName)
            if not (await self.topic_exists(twin) or (await self.partitioned_topics.get(twin)).partitions):
                await self.schemas.delete(topic, "", force=True)

    async def _open_heartbeat(self) -> Topic:
        return await self._topics.load(heartbeat_topic(self.advertised), create=True)

    def _serves(self, topic: TopicName) -> bool:
        return self.owners.serves(topic) or topic == heartbeat_topic(self.advertised)

    def _require_owned(self, topic: TopicName) -> None:
        if not self._serves(topic):
            raise TopicElsewhere(str(topic), self.advertised.http_url)
