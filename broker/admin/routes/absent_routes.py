"""Routes of Apache's admin REST whose feature is not here: 501, each with the reason and what there is instead.

A tool that asks for one gets the reason, rather than an unknown path.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from ...security.authorization.needs import Kind
from ..rest.answers import Refusal
from ..rest.endpoints import SUPER_USER, Access, Endpoint, Handler

V2 = "/admin/v2"
_NAMESPACE = V2 + "/namespaces/{tenant}/{namespace}"
_TOPIC = "{tenant}/{namespace}/{topic}"
_STATUS = f"{V2}/persistent/{_TOPIC}/subscription/{{subscription}}/replicatedSubscriptionStatus"
_PRODUCE = Access(Kind.TOPIC, "PRODUCE")
_JAVA = "it is of the Java process that Apache's broker is; /metrics has what this one measures of itself"
_GROUPS = "resource groups are not there; rates are set of namespaces (publishRate, dispatchRate) and topics"
_ONE_CLUSTER = "clusters are not migrated; clients go to another URL by their service URL provider"
_METADATA = (
    "metadata are not migrated while brokers run; interpulse export-metadata and import-metadata move those of a stopped one"
)
_REPLICATION = "replication between clusters is not there yet"
_ONE_BY_ONE = "permissions are given and taken a topic at a time (.../permissions/{role})"
_KEYS = "topics' properties are not labels of metrics"
_REST_PRODUCER = "messages are not published over HTTP; pulsar-client produce does, as any client of the binary protocol"

ABSENT: Sequence[tuple[tuple[str, ...], str, Access, str]] = (
    (("GET",), V2 + "/broker-stats/allocator-stats/{allocator}", SUPER_USER, _JAVA),
    (("GET",), V2 + "/broker-stats/mbeans", SUPER_USER, _JAVA),
    (("GET",), V2 + "/broker-stats/bookieops", SUPER_USER, "operations of bookies are counted in /metrics"),
    (("GET",), V2 + "/broker-stats/broker-resource-availability/{tenant}/{namespace}", SUPER_USER,
     "/admin/v2/broker-stats/load-report shows the load"),
    (("POST",), V2 + "/brokers/shutdown", SUPER_USER, "stop the process: at SIGTERM a broker hands its bundles over first"),
    (("POST",), V2 + "/clusters/{cluster}/migrate", SUPER_USER, _ONE_CLUSTER),
    (("POST",), _NAMESPACE + "/migration", SUPER_USER, _ONE_CLUSTER),
    (("POST",), V2 + "/metadata/migration/start", SUPER_USER, _METADATA),
    (("GET",), V2 + "/metadata/migration/status", SUPER_USER, _METADATA),
    (("GET", "POST", "DELETE"), _NAMESPACE + "/allowedTopicPropertyKeysForMetrics", SUPER_USER, _KEYS),
    (("GET",), _NAMESPACE + "/{bundle}/topicHashPositions", SUPER_USER,
     "GET .../bundles has the edges of the bundles, and /lookup/v2/topic/.../bundle that of a topic"),
    (("POST",), V2 + "/namespaces/grantPermissionsOnTopics", SUPER_USER, _ONE_BY_ONE),
    (("POST",), V2 + "/namespaces/revokePermissionsOnTopics", SUPER_USER, _ONE_BY_ONE),
    (("GET", "POST"), _STATUS, Access(Kind.TOPIC, "SET_REPLICATED_SUBSCRIPTION_STATUS"), _REPLICATION),
    (("GET",), V2 + "/resourcegroups", SUPER_USER, _GROUPS),
    (("GET", "PUT", "DELETE"), V2 + "/resourcegroups/{resourcegroup}", SUPER_USER, _GROUPS),
    (("POST",), f"/topics/persistent/{_TOPIC}", _PRODUCE, _REST_PRODUCER),
    (("POST",), f"/topics/non-persistent/{_TOPIC}", _PRODUCE, _REST_PRODUCER),
    (("POST",), f"/topics/persistent/{_TOPIC}/partitions/{{partition}}", SUPER_USER, _REST_PRODUCER),
    (("POST",), f"/topics/non-persistent/{_TOPIC}/partitions/{{partition}}", SUPER_USER, _REST_PRODUCER),
)  # fmt: skip
"""Methods, path, permission, reason. Super-users alone get the reason where Apache lets in every authenticated caller."""


class AbsentRoutes:
    """The handlers; one instance per server."""

    def routes(self) -> list[Endpoint]:
        return [
            Endpoint(method, path, _refuser(path, reason), access, summary=f"Answered 501: {reason}.")
            for methods, path, access, reason in ABSENT
            for method in methods
        ]


def _refuser(path: str, reason: str) -> Handler:
    what = path.rsplit("/", 1)[1] if not path.endswith("}") else path.split("/")[3 if path.startswith(V2) else 1]

    async def refuse(request: Request) -> Response:
        raise Refusal(501, f"{what} is not supported: {reason}")

    return refuse
