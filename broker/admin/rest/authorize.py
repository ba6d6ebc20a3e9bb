"""Authorization of routes: the dispatcher asks before it looks at anything else of a request. Owns no decision.

An unknown caller is answered 401; a known caller without permission, with the status that Apache has for the kind of
permission, 401 or 403. A route that declares nothing is for super-users. Routes of an absent tenant answer 404 to every caller,
as Apache's.
"""

from functools import partial

from starlette.requests import Request

from ...security.authentication.principals import AuthenticationRefused
from ...security.authorization.authorization import Denied
from ...security.authorization.callers import BadCaller, Caller
from ...security.authorization.needs import Kind, Need
from ...security.security import Security
from ...service.topic_name import TopicName
from .answers import Refusal
from .dispatch import Authorize, allow_all
from .endpoints import Endpoint

METRICS, TENANTS = "/metrics", "/admin/v2/tenants"
TENANT_ABSENT = "Tenant does not exist"
_FORBIDDEN = frozenset({Kind.NAMESPACE, Kind.NAMESPACE_POLICY, Kind.TOPIC_POLICY, Kind.AUTHENTICATED})
"""Kinds whose denial Apache answers with 403; the others with 401."""


def authorizer(security: Security | None) -> Authorize:
    """Returns the check that `admin_app` makes before each route."""
    if security is None:
        return allow_all

    async def authorize(request: Request, endpoint: Endpoint) -> None:
        is_of_tenants = endpoint.path.startswith(TENANTS)
        is_metrics = endpoint.path.rstrip("/") == METRICS
        if endpoint.access.kind is Kind.ANYBODY or (is_metrics and not security.settings.authenticate_metrics_endpoint):
            return
        request.state.caller = caller = _caller(request, security)
        if security.authorization is not None:
            request.state.may = partial(security.authorization.may, caller)
        need = Need(Kind.AUTHENTICATED) if is_metrics else need_of(endpoint, request.path_params)
        if security.authorization is not None:
            try:
                await security.authorization.require(caller, need)
            except Denied as denied:
                if need.tenant and not is_of_tenants and not await security.authorization.has_tenant(need.tenant):
                    raise Refusal(404, TENANT_ABSENT) from None
                raise Refusal(403 if need.kind in _FORBIDDEN else 401, str(denied)) from None

    return authorize


def need_of(endpoint: Endpoint, names: dict[str, str]) -> Need:
    """The endpoint's need, with the names in the path; a topic has its full name."""
    access = endpoint.access
    kind, tenant = access.kind, names.get("tenant", "")
    namespace = f"{tenant}/{names['namespace']}" if tenant and "namespace" in names else ""
    topic = ""
    if kind in (Kind.TOPIC, Kind.TOPIC_POLICY):
        topic = str(TopicName.parse(f"{_domain(endpoint, names)}://{namespace}/{names['topic']}"))
    return Need(kind, access.operation, tenant, namespace, topic, names.get("subscription", ""))


def _domain(endpoint: Endpoint, names: dict[str, str]) -> str:
    return names.get("domain") or ("non-persistent" if "/non-persistent/" in endpoint.path else "persistent")


def _caller(request: Request, security: Security) -> Caller:
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        return security.caller_of(headers, getattr(request.state, "certificate", None))
    except AuthenticationRefused as refused:
        raise Refusal(401, "Authentication required") from refused
    except BadCaller as bad:
        raise Refusal(401, f"Need to authenticate to perform the request: {bad}") from bad
