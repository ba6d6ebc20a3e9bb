"""Metrics of a broker in Prometheus' text format: its sums over topics, under the names that Apache's broker has for them.

Read from what the topics keep anyway. Apache's names per topic, namespace and subscription are not here.
"""

from collections.abc import Iterable, Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..service.broker_service import BrokerService
from ..topic.stats import TopicStats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsRoutes:
    """The handler; one instance per server."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        return [Route("/metrics", self.metrics, methods=["GET"]), Route("/metrics/", self.metrics, methods=["GET"])]

    async def metrics(self, request: Request) -> Response:
        stats = [topic.stats() for topic in self._service.loaded_topics.values()]
        return Response(metrics_text(self._service.settings.cluster_name, stats), media_type=CONTENT_TYPE)


def metrics_text(cluster: str, stats: Iterable[TopicStats]) -> str:
    """Gauges, each with the label of its cluster."""
    label = cluster.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(f'# TYPE {name} gauge\n{name}{{cluster="{label}"}} {value}\n' for name, value in _samples(list(stats)))


def _samples(stats: list[TopicStats]) -> Iterator[tuple[str, float]]:
    subscriptions = [each for topic in stats for each in topic.subscriptions.values()]
    yield "pulsar_broker_topics_count", len(stats)
    yield "pulsar_broker_subscriptions_count", len(subscriptions)
    yield "pulsar_broker_producers_count", sum(len(topic.publishers) for topic in stats)
    yield "pulsar_broker_consumers_count", sum(len(each.consumers) for each in subscriptions)
    yield "pulsar_broker_rate_in", sum(topic.msg_rate_in for topic in stats)
    yield "pulsar_broker_rate_out", sum(topic.msg_rate_out for topic in stats)
    yield "pulsar_broker_throughput_in", sum(topic.msg_throughput_in for topic in stats)
    yield "pulsar_broker_throughput_out", sum(topic.msg_throughput_out for topic in stats)
    yield "pulsar_broker_storage_size", sum(topic.storage_size for topic in stats)
    yield "pulsar_broker_msg_backlog", sum(each.msg_backlog for each in subscriptions)
