"""GET /metrics: a broker's metrics in Prometheus' text form, collected and written in slices.

Between two slices the loop has its turn, so that a scrape of any number of topics holds up no publish. Owns no counts: they are
the topics', the managed ledgers' and `BrokerMeters`. Nothing is kept from one scrape to the next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from managed_ledger.meters import LedgerMeters
from ports.loop.slices import in_slices

from ...security.authentication.authentication import AuthenticationMeters
from ...service.broker_service import BrokerService
from ...service.topic_name import TopicName
from ...transaction.coordinators import Coordinators
from ..rest.answers import refusal
from .broker import broker_text, load_text, namespaces_text
from .cursors import cursor_label, cursor_row
from .operations import (
    authentication_text,
    metadata_text,
    moves_text,
    quotas_text,
    schemas_text,
    splits_text,
    usage_text,
)
from .text import CONTENT_TYPE, family, labels, samples_text
from .topics import Tables
from .transactions import asked_text, transactions_text

TOPICS_AT_A_TIME = 20
"""Collected between two turns of the loop: about a millisecond."""
GATHER = "interpulse.gather"
"""Key in the scope of a request to a port that several processes share: the answer for all of them."""


class MetricsRoutes:
    """The handler; one instance per server."""

    def __init__(
        self,
        service: BrokerService,
        coordinators: Coordinators | None = None,
        authentication: AuthenticationMeters | None = None,
    ) -> None:
        self._service, self._coordinators, self._authentication = service, coordinators, authentication

    def routes(self) -> list[BaseRoute]:
        return [Route("/metrics", self.metrics, methods=["GET"]), Route("/metrics/", self.metrics, methods=["GET"])]

    async def metrics(self, request: Request) -> Response:
        """Returns the metrics of this broker, in the text format of Prometheus; those of all processes on a shared port."""
        gather: Callable[[], Awaitable[Response]] | None = request.scope.get(GATHER)
        if gather is not None:
            return await gather()
        timeout = self._service.meters.settings.metrics_servlet_timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout):
                tables = await self.collect()
        except TimeoutError:
            return refusal(503, f"The metrics were not collected within metricsServletTimeoutMs ({timeout:g} s)")
        return _Pieces(self._texts(tables))

    async def collect(self) -> Tables:
        """Collects the metrics of all topics that are loaded now, and loaded still when their turn comes."""
        meters, topics = self._service.meters, self._service.catalogue.loaded_topics
        tables = Tables(self._service.settings.cluster_name, meters.settings, meters.copies)
        loop = asyncio.get_running_loop()
        for count, name in enumerate(list(topics), 1):
            topic = topics.get(name)
            if topic is not None:
                parsed = TopicName.parse(name)
                ledger = await self._ledger(parsed.managed_ledger_name, tables, loop.time())
                await tables.add(parsed, await topic.stats_in_slices(), ledger)
            if count % TOPICS_AT_A_TIME == 0:
                await asyncio.sleep(0)
        tables.finish()
        return tables

    async def _ledger(self, name: str, tables: Tables, now: float) -> LedgerMeters | None:
        """Adds the series of the cursors, and returns the meters of a topic's managed ledger."""
        meters, managed = self._service.meters, self._service.meters.managed_ledgers
        ledger = None if managed is None else managed.meters_of(name)
        if managed is None or ledger is None:
            return None
        ledger.sample(now, meters.sample_seconds)
        if meters.settings.expose_managed_cursor_metrics_in_prometheus:
            async for cursor, facts in in_slices(managed.cursors_of(name)):
                label = cursor_label(self._service.settings.cluster_name, name, cursor)
                tables.cursors.add(label, cursor_row(facts, meters.copies))
        return ledger

    def _texts(self, tables: Tables) -> Iterator[str]:
        meters, cluster = self._service.meters, self._service.settings.cluster_name
        now, connections = asyncio.get_running_loop().time(), meters.connections_opened - meters.connections_closed
        yield "".join(broker_text(cluster, tables.broker, meters, connections, now))
        yield quotas_text(cluster, meters.quota_check_seconds, tables.broker.evictions)
        yield from self._operations(cluster)
        if self._coordinators is not None:
            yield from transactions_text(cluster, self._coordinators.all.values())
            with_topics = meters.settings.expose_topic_level_metrics_in_prometheus
            yield from asked_text(cluster, self._coordinators.ending_meters, with_topics=with_topics)
        with_ledgers = meters.settings.expose_managed_ledger_metrics_in_prometheus
        yield from namespaces_text(cluster, tables.by_namespace, with_ledgers=with_ledgers)
        for table in tables.all():
            for column, (name, kind) in enumerate(table.names):
                yield from family(name, kind, table.series, table.rows, column)
            while table.let_go():
                yield ""

    def _operations(self, cluster: str) -> Iterator[str]:
        service, metadata = self._service, self._service.meters.metadata
        if metadata is not None:
            yield metadata_text(cluster, metadata)
        if self._authentication is not None:
            yield authentication_text(cluster, self._authentication)
        yield schemas_text(cluster, service.schemas.registry.meters)
        yield splits_text(cluster, service.splits)
        if service.load.driver is not None:
            yield load_text(cluster, service.load.driver.reported().usage)
            yield usage_text(cluster, service.load.driver.reported().usage)
            yield moves_text(cluster, service.load.driver.moves, service.load.driver.usages)
        if service.bookies_inside:  # by the name that a bookie in a process of its own has for it
            told = sum(each.entries_told() for each in service.bookies_inside.values())
            yield samples_text(labels(cluster=cluster), [("bookie_local_read_entries", "counter", told)])


class _Pieces(Response):
    """A body that is made while it is sent, at the speed of its reader; the loop has its turn between two pieces."""

    def __init__(self, texts: Iterator[str]) -> None:
        super().__init__(media_type=CONTENT_TYPE)
        self._texts = texts
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for text in self._texts:
            if text:
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
