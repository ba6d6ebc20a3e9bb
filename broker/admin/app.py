"""The admin REST as one ASGI application, and the listener that serves it. Owns no state of its own."""

import asyncio
import socket

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from metadata.store import MetadataError, MetadataStore
from ports.audit import Audit
from ports.network.web_port import WebPort

from ..errors import BrokerError
from ..security.authentication.meters import AuthenticationMeters
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
from .routes.namespaces.namespaces import NamespaceRoutes
from .routes.namespaces.permissions import PermissionRoutes
from .routes.namespaces.policies import NamespacePolicyRoutes
from .routes.namespaces.settings import NamespaceSettingRoutes
from .routes.namespaces.tenants import TenantRoutes
from .routes.namespaces.unloading import UnloadingRoutes
from .routes.topic_policies.topic_policies import TopicPolicyRoutes
from .routes.topics.cursors import CursorRoutes
from .routes.topics.non_persistent import NonPersistentRoutes
from .routes.topics.schemas import SchemaRoutes
from .routes.topics.subscriptions import SubscriptionRoutes
from .routes.topics.topics import TopicRoutes
from .routes.transactions.internals import TransactionInternalRoutes
from .routes.transactions.stats import TransactionStatRoutes
from .routes.transactions.transactions import TransactionRoutes


def admin_app(
    service: BrokerService,
    store: MetadataStore,
    version: str,
    authorize: Authorize = allow_all,
    coordinators: Coordinators | None = None,
    authentication: AuthenticationMeters | None = None,
) -> Starlette:
    """All routes on one broker; `authorize` is asked before each. `coordinators`: of transactions, if there are any;
    `authentication`: whom it has let in and whom not."""
    dispatcher: Dispatcher
    routes: list[Endpoint | BaseRoute] = [
        *AbsentRoutes().routes(),
        *AffinityRoutes(service, store).routes(),
        *BundleRoutes(service).routes(),
        *BookieRoutes(service, store).routes(),
        *BrokerRoutes(service, store, version).routes(),
        *BrokerStatsRoutes(service).routes(),
        *ClusterRoutes(store).routes(),
        *CursorRoutes(service).routes(),
        *IsolationRoutes(service, store).routes(),
        *LookupRoutes(service).routes(),
        *MetricsRoutes(service, coordinators, authentication).routes(),
        *NamespaceBacklogRoutes(service).routes(),
        *NamespacePolicyRoutes(service).routes(),
        *NamespaceRoutes(service, store).routes(),
        *NamespaceSettingRoutes(service, store).routes(),
        *OpenApiRoutes(version, lambda: dispatcher.endpoints).routes(),
        *PermissionRoutes(service).routes(),
        *ResourceQuotaRoutes(service, store).routes(),
        *SchemaRoutes(service).routes(),
        *SubscriptionRoutes(service).routes(),
        *TenantRoutes(service, store).routes(),
        *UnloadingRoutes(service).routes(),
        *TopicRoutes(service).routes(),
        *TopicPolicyRoutes(service).routes(),
        *TransactionRoutes(service, coordinators).routes(),
        *TransactionStatRoutes(service, is_enabled=coordinators is not None).routes(),
        *TransactionInternalRoutes(service, is_enabled=coordinators is not None).routes(),
    ]
    routes += NonPersistentRoutes(service, [each for each in routes if isinstance(each, Endpoint)]).routes()
    handlers = {
        TopicElsewhere: to_owner(service),
        BrokerError: on_broker_error,
        MetadataError: on_metadata_error,
        Refusal: on_refusal,
        HTTPException: on_http_error,
    }
    dispatcher = Dispatcher(routes, authorize)
    return Starlette(routes=[dispatcher], exception_handlers=handlers, middleware=[Middleware(Audit)])


async def serve_admin(app: Starlette, listening: socket.socket) -> asyncio.Server:
    """Serve on a bound socket."""
    return await asyncio.get_running_loop().create_server(WebPort(app), sock=listening)
