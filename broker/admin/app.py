"""The admin REST as one ASGI application, and the listener that serves it. Owns no state of its own."""

import asyncio
import socket
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from metadata.store import MetadataError, MetadataStore
from ports.audit import Audit
from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort
from ports.network.web_port import WebPort

from ..errors import BrokerError
from ..security.authentication.authentication import AuthenticationMeters
from ..service.broker_service import BrokerService
from ..service.errors import TopicElsewhere
from ..transaction.coordinators import Coordinators
from .metrics.metrics import MetricsRoutes
from .rest.answers import Refusal, on_broker_error, on_http_error, on_metadata_error, on_refusal
from .rest.dispatch import Authorize, Dispatcher, allow_all
from .rest.elsewhere import to_owner
from .rest.endpoints import Endpoint
from .rest.openapi import OpenApiRoutes
from .routes.absent_routes import AbsentRoutes
from .routes.cluster.affinity import AffinityRoutes
from .routes.cluster.bookies import BookieRoutes
from .routes.cluster.broker_stats import BrokerStatsRoutes
from .routes.cluster.brokers import BrokerRoutes
from .routes.cluster.clusters import ClusterRoutes
from .routes.cluster.isolation import IsolationRoutes
from .routes.cluster.resource_quotas import ResourceQuotaRoutes
from .routes.lookup import LookupRoutes
from .routes.namespaces.backlogs import NamespaceBacklogRoutes
from .routes.namespaces.bundles import BundleRoutes
from .routes.namespaces.deletion import NamespaceDeletion
from .routes.namespaces.namespaces import NamespaceRoutes
from .routes.namespaces.permissions import PermissionRoutes
from .routes.namespaces.policies import NamespacePolicyRoutes
from .routes.namespaces.settings import NamespaceSettingRoutes
from .routes.namespaces.tenants import TenantRoutes
from .routes.namespaces.unloading import UnloadingRoutes
from .routes.topic_policies.access import TopicPolicyAccess
from .routes.topic_policies.topic_policies import TopicPolicyRoutes
from .routes.topics.cursors import CursorRoutes
from .routes.topics.facts import TopicFactRoutes
from .routes.topics.non_persistent import NonPersistentRoutes
from .routes.topics.properties import TopicPropertyRoutes
from .routes.topics.schemas import SchemaRoutes
from .routes.topics.subscriptions import SubscriptionRoutes
from .routes.topics.topics import TopicRoutes
from .routes.transactions.internals import TransactionInternalRoutes
from .routes.transactions.stats import TransactionStatRoutes
from .routes.transactions.transactions import TransactionRoutes

Upgrade = Callable[[], asyncio.Protocol]


def admin_app(
    service: BrokerService,
    store: MetadataStore,
    version: str,
    authorize: Authorize = allow_all,
    coordinators: Coordinators | None = None,
    authentication: AuthenticationMeters | None = None,
) -> Starlette:
    """All routes on one broker; `authorize` is asked before each. `coordinators`: of transactions, if there are any;
    `authentication`: counts of accepted and refused clients.
    """
    dispatcher: Dispatcher
    catalogue, lookup, lifecycle = service.catalogue, service.lookup, service.lifecycle
    policies, schemas, settings = service.namespace_policies, service.schemas, service.settings
    deletion = NamespaceDeletion(catalogue, lookup, lifecycle, schemas, store)
    documents = TopicPolicyAccess(settings, catalogue, lifecycle, service.deletion, service.topic_policies)
    routes: list[Endpoint | BaseRoute] = [
        *AbsentRoutes().routes(),
        *AffinityRoutes(catalogue, policies, store).routes(),
        *BundleRoutes(catalogue, lookup, service.splits).routes(),
        *BookieRoutes(service.bookies_inside, store).routes(),
        *BrokerRoutes(service, store, version).routes(),
        *BrokerStatsRoutes(catalogue, lookup, service.load, settings).routes(),
        *ClusterRoutes(store).routes(),
        *CursorRoutes(catalogue, lookup, lifecycle, schemas).routes(),
        *IsolationRoutes(lookup, policies, store).routes(),
        *LookupRoutes(catalogue, lookup).routes(),
        *MetricsRoutes(service, coordinators, authentication).routes(),
        *NamespaceBacklogRoutes(catalogue, lookup, lifecycle).routes(),
        *NamespacePolicyRoutes(catalogue, policies, settings.cluster_name).routes(),
        *NamespaceRoutes(catalogue, lookup, policies, settings, deletion, store).routes(),
        *NamespaceSettingRoutes(catalogue, policies, settings, store).routes(),
        *OpenApiRoutes(version, lambda: dispatcher.endpoints).routes(),
        *PermissionRoutes(policies).routes(),
        *ResourceQuotaRoutes(catalogue, lookup, store).routes(),
        *SchemaRoutes(schemas).routes(),
        *SubscriptionRoutes(catalogue, lookup, lifecycle).routes(),
        *TenantRoutes(settings, deletion, store).routes(),
        *UnloadingRoutes(catalogue, lookup, lifecycle, service.load).routes(),
        *TopicRoutes(catalogue, lookup, lifecycle, service.creation, service.deletion).routes(),
        *TopicPropertyRoutes(catalogue, lookup, lifecycle, policies).routes(),
        *TopicFactRoutes(catalogue, lookup, lifecycle, schemas).routes(),
        *TopicPolicyRoutes(documents, policies, schemas).routes(),
        *TransactionRoutes(catalogue, lookup, coordinators).routes(),
        *TransactionStatRoutes(lifecycle, is_enabled=coordinators is not None).routes(),
        *TransactionInternalRoutes(lookup, lifecycle, is_enabled=coordinators is not None).routes(),
    ]
    of_others = [each for each in routes if isinstance(each, Endpoint)]
    routes += NonPersistentRoutes(catalogue, lookup, of_others).routes()
    handlers = {
        TopicElsewhere: to_owner(lookup),
        BrokerError: on_broker_error,
        MetadataError: on_metadata_error,
        Refusal: on_refusal,
        HTTPException: on_http_error,
    }
    dispatcher = Dispatcher(routes, authorize)
    return Starlette(routes=[dispatcher], exception_handlers=handlers, middleware=[Middleware(Audit)])


async def serve_admin(app: Starlette, listening: socket.socket, upgrade: Upgrade | None = None) -> asyncio.Server:
    """Serve on a bound socket. `upgrade`: makes the protocol of a WebSocket; None: there are none."""
    return await asyncio.get_running_loop().create_server(WebPort(app, upgrade=upgrade), sock=listening)


def serve_admin_tls(app: Starlette, listening: socket.socket, tls: RenewedTls, upgrade: Upgrade | None = None) -> TlsPort:
    """On a bound socket that listens, as `serve_admin` without TLS."""
    port = TlsPort(listening, WebPort(app, upgrade=upgrade), tls)
    port.start()
    return port
