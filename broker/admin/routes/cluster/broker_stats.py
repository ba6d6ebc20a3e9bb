"""Routes for measurements of this broker: load, topics, sums by namespace (Apache: BrokerStatsBase)."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ports.loop.slices import in_slices
from ports.loop.taking_apart import items_taken_apart, taken_apart

from ....service.catalogue.catalogue import Catalogue
from ....service.load.load_driver import LoadBalancing
from ....service.load.loads import BrokerLoad, load_fields
from ....service.lookup import Lookup
from ....service.settings import BrokerSettings
from ....service.topic_name import TopicName
from ....topic.statistics.topic_stats import TopicStats
from ...rest.answers import json_answer
from ...rest.endpoints import SUPER_USER, Endpoint
from ...stats.topic_stats import topic_stats_json
from ..namespaces.bundles import bundles_of

_STATS = "/admin/v2/broker-stats"


class BrokerStatsRoutes:
    """The handlers; one instance per server."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, load: LoadBalancing, settings: BrokerSettings) -> None:
        self._catalogue, self._lookup, self._load, self._settings = catalogue, lookup, load, settings

    def routes(self) -> list[Endpoint]:
        return [
            Endpoint("GET", _STATS + "/load-report", self.load_report, SUPER_USER, answer=dict[str, Any]),
            Endpoint("GET", _STATS + "/topics", self.topics, SUPER_USER, answer=dict[str, Any]),
            Endpoint("GET", _STATS + "/metrics", self.metrics, SUPER_USER, answer=list[dict[str, Any]]),
        ]

    async def load_report(self, request: Request) -> Response:
        """Tells the load that was reported last, the changing half of LocalBrokerData."""
        load = self._load.driver
        return json_answer(load_fields(BrokerLoad() if load is None else load.reported()))

    async def topics(self, request: Request) -> Response:
        """TopicStats of every topic that is served here, by namespace, bundle and domain."""
        found: dict[str, Any] = {}
        async for text, topic in in_slices(items_taken_apart(self._catalogue.loaded_topics)):
            name = TopicName.parse(text)
            bundle = (await bundles_of(self._lookup, name.namespace)).of(name).range
            domains = found.setdefault(str(name.namespace), {}).setdefault(bundle, {})
            domains.setdefault(name.domain, {})[text] = await topic_stats_json(topic, written=True)
        return json_answer(found)

    async def metrics(self, request: Request) -> Response:
        """Sums over the topics of each namespace, under the names of Apache's NamespaceStats."""
        by_namespace: dict[str, dict[str, float]] = {}
        async for text, topic in in_slices(items_taken_apart(self._catalogue.loaded_topics)):
            sums = by_namespace.setdefault(str(TopicName.parse(text).namespace), {})
            stats = await topic.stats_in_slices()
            _add(sums, _of_topic(stats))
            subscriptions = taken_apart(stats.subscriptions.values())
            del stats
            async for each in in_slices(subscriptions):
                _add(sums, {"brk_msg_backlog": each.msg_backlog, "brk_no_of_consumers": len(each.consumers)})
        cluster = self._settings.cluster_name
        return json_answer(
            [
                {"metrics": sums, "dimensions": {"cluster": cluster, "namespace": namespace}}
                for namespace, sums in by_namespace.items()
            ]
        )


def _of_topic(stats: TopicStats) -> dict[str, float]:
    """Returns the stats of a topic; those of subscriptions are 0 yet."""
    return {
        "brk_in_rate": stats.msg_rate_in,
        "brk_in_tp_rate": stats.msg_throughput_in,
        "brk_out_rate": stats.msg_rate_out,
        "brk_out_tp_rate": stats.msg_throughput_out,
        "brk_storage_size": stats.storage_size,
        "brk_msg_backlog": 0,
        "brk_no_of_producers": len(stats.publishers),
        "brk_no_of_subscriptions": len(stats.subscriptions),
        "brk_no_of_consumers": 0,
    }


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        sums[name] = sums.get(name, 0) + value
