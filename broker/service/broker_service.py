"""BrokerService: the parts of one broker put together, and the order in which they start and close. Does no work of its own.

`catalogue` knows topics that exist, `lookup` who serves them, `lifecycle` loads, creates and deletes them; `creation` and
`deletion` do so with partitioned topics. Callers are given the parts that they use. Each part knows only parts made before it.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from bookkeeper.ledgers import LedgerStore
from metadata.store import MetadataStore
from ports.clock import Clock

from ..meters import BrokerMeters
from ..schema.registry import SchemaRegistry
from ..schema.storage import SchemaStorage
from ..topic.contract import OpenTopic
from .addresses import Advertised
from .bookies_inside import BookieInside
from .catalogue.catalogue import Catalogue
from .catalogue.loaded_topics import LoadedTopics
from .catalogue.namespaces import GoneNamespaces
from .dynamic_configuration import DynamicConfiguration, DynamicSettings, NothingDynamic
from .lifecycle.creation_rules import CreationRules
from .lifecycle.heartbeat import Heartbeat
from .lifecycle.housekeeping import CheckUnused, Housekeeping
from .lifecycle.partitioned_creation import PartitionedCreation
from .lifecycle.partitioned_deletion import PartitionedDeletion
from .lifecycle.topic_lifecycle import TopicLifecycle
from .lifecycle.topic_loading import TopicLoading
from .load.bundle_splits import BundleSplits
from .load.load_driver import LoadBalancing
from .load.settings import LoadSettings
from .lookup import Lookup
from .neighbours.neighbours import Neighbours
from .ownership.owners import OwnerOfAll, Owners
from .policies.change_events import ChangeEvents
from .policies.namespace_policies import NamespacePolicies
from .policies.policy_enforcement import PolicyEnforcement
from .policies.topic_policies import TopicPolicyDocuments
from .producer_names import ProducerNames
from .settings import BrokerSettings
from .system_topics.system_logs import SystemLogs
from .topic_name import TopicName
from .topic_schemas import TopicSchemas


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Parts of a broker that tests and tools may leave out."""

    load: LoadSettings = field(default_factory=LoadSettings)
    dynamic_settings: DynamicSettings = field(default_factory=NothingDynamic)
    neighbours: Neighbours = field(default_factory=Neighbours)
    meters: BrokerMeters = field(default_factory=BrokerMeters)


class BrokerService:
    """One broker. `start` before anything else; `close` unloads all topics."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: MetadataStore,
        clock: Clock,
        open_topic: OpenTopic,
        ledgers: LedgerStore,
        options: ServiceOptions | None = None,
    ) -> None:
        options = options or ServiceOptions()
        self.settings, self.clock, self.meters, self._store = settings, clock, options.meters, store
        loads_max, load_seconds_max = settings.max_concurrent_topic_load_request, settings.topic_load_timeout_seconds
        loaded = LoadedTopics(loads_max, load_seconds_max, self.meters)
        self.catalogue = Catalogue(store, loaded, settings.max_num_partitions_per_partitioned_topic)
        self.lookup = Lookup(settings, self.catalogue, options.neighbours, self.meters)
        self.producer_names = ProducerNames(store, settings.cluster_name)
        self.load = LoadBalancing()
        self.splits = BundleSplits(options.load, self.catalogue, self.lookup)
        self.bookies_inside: dict[str, BookieInside] = {}
        """Bookies of this process that hand over their files, by name."""

        self.gone_namespaces = GoneNamespaces(loaded.names)
        self.namespace_policies = NamespacePolicies(store, settings.cluster_name, self.gone_namespaces.gone)
        rules = CreationRules(settings, self.catalogue, self.namespace_policies)
        loading = TopicLoading(open_topic, self.lookup, rules)
        self.system_logs = SystemLogs(self.catalogue, self.lookup, loading.load_system, self.producer_names.new)
        change_events = ChangeEvents(settings, self.system_logs)
        self.topic_policies = TopicPolicyDocuments(store, settings.cluster_name, clock, change_events.open)
        self.policies = PolicyEnforcement(self.namespace_policies, self.topic_policies, loaded)
        self.dynamic_configuration = DynamicConfiguration(store, options.dynamic_settings, self.policies.settings_changed)
        registry = SchemaRegistry(SchemaStorage(store, ledgers), clock)
        self.schemas = TopicSchemas(registry, settings, self.policies.said_of)
        self.gone_namespaces.listeners += [self.topic_policies.forget, lambda each: registry.meters.forget(str(each))]

        self.lifecycle = TopicLifecycle(self.lookup, rules, loading, self.policies, self.schemas)
        self.creation = PartitionedCreation(self.lookup, rules)
        self.deletion = PartitionedDeletion(self.catalogue, self.lifecycle)
        self.heartbeat = Heartbeat(partial(loading.load_heartbeat, self.policies.put_in_force), self.producer_names.new)
        self.housekeeping = Housekeeping(settings, loaded.all, self._delete_unused, self.meters)
        self._housekeeper: asyncio.Task[None] | None = None

    @property
    def is_started(self) -> bool:
        return self.producer_names.are_open

    async def start(self, advertised: Advertised, owners: Owners | None = None) -> None:
        """Starts all parts but `load`. `advertised`: addresses at which clients reach this broker; `owners`: owners of bundles
        in a cluster; None: this broker owns all."""
        await self.dynamic_configuration.start()
        bundles = self.settings.default_number_of_namespace_bundles
        self.lookup.start(advertised, owners or OwnerOfAll(self._store, bundles, self.lifecycle.close_topics))
        self._housekeeper = asyncio.create_task(self.housekeeping.run(), name="broker housekeeping")
        await self.producer_names.open(self.clock.now_ms())

    async def bootstrap_standalone(self, advertised: Advertised) -> None:
        """Creates the cluster, tenants and namespaces of a standalone that are missing."""
        await self.catalogue.namespaces.bootstrap_standalone(
            self.settings.cluster_name,
            self.settings.default_number_of_namespace_bundles,
            advertised.http_url,
            advertised.broker_url,
        )

    async def close(self) -> None:
        """Unloads all topics. Closing twice is fine."""
        self.catalogue.close()
        await self.heartbeat.close()
        self.dynamic_configuration.close()
        self.policies.close()
        if self._housekeeper is not None:
            self._housekeeper.cancel()
            await asyncio.gather(self._housekeeper, return_exceptions=True)
            self._housekeeper = None
        await self.lookup.close()
        await self.lifecycle.close()

    async def _delete_unused(self, name: str, check: CheckUnused) -> None:
        with_metadata = self.settings.broker_delete_inactive_partitioned_topic_metadata_enabled
        await self.deletion.delete_unused(TopicName.parse(name), check, with_metadata=with_metadata)
