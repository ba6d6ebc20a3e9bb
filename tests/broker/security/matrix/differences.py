"""Decisions that differ from Apache Pulsar 4.0.8, with the reasons. We are the stricter but for routes that do nothing."""

from collections.abc import Mapping

_OPEN = "Apache asks for no permission: everybody who is known may; here it is a permission of the topic or namespace"
_PROXY = (
    "Apache asks whether the proxy's role may, and not for whom it speaks (as in CVE-2023-30429); here both must be allowed"
)
_REFUSED = "Apache refuses it to everybody, before it asks who it is"
_UNKNOWN = "Apache 4.0.8 has no such route: 404 to all"
_ABSENT = "the feature is not here: 501 to super-users, and nothing to others"
_LOOKUP = "Apache lets everybody do it who may look the topic up; here it is for the tenant's admins"
_NAMESPACE, _TOPIC = "/admin/v2/namespaces/{tenant}/{namespace}", "/admin/v2/persistent/{tenant}/{namespace}/{topic}"
_PASSING = "/admin/v2/non-persistent/{tenant}/{namespace}/{topic}"

BY_ROUTE: Mapping[str, str] = {
    **{f"{method} {_NAMESPACE}/properties": _PROXY for method in ("GET", "PUT", "DELETE")},
    **{f"{method} {_NAMESPACE}/property/{{key}}": _PROXY for method in ("GET", "DELETE")},
    f"PUT {_NAMESPACE}/property/{{key}}/{{value}}": _PROXY,
    f"GET {_NAMESPACE}/scanOffloadedLedgers": _OPEN,
    f"GET {_TOPIC}/getMessageIdByIndex": _OPEN,
    f"PUT {_TOPIC}/properties": _OPEN,
    **{f"{method} {_TOPIC}/maxMessageSize": _PROXY for method in ("GET", "POST", "DELETE")},
    **{f"{method} {_TOPIC}/subscriptionExpirationTime": _UNKNOWN for method in ("GET", "POST", "DELETE")},
    f"GET {_TOPIC}/permissions": _PROXY,
    f"POST {_TOPIC}/permissions/{{role}}": _PROXY,
    f"DELETE {_TOPIC}/permissions/{{role}}": _PROXY,
    f"POST {_TOPIC}/createMissedPartitions": _LOOKUP,
    f"GET {_TOPIC}/internal-info": _LOOKUP,
    f"DELETE {_TOPIC}/truncate": _LOOKUP,
    "GET /admin/v2/namespaces/{cluster}/antiAffinity/{group}": _OPEN,
    **{f"{method} {_PASSING}/maxMessageSize": _PROXY for method in ("GET", "POST", "DELETE")},
    **{f"{method} {_PASSING}/properties": _OPEN for method in ("GET", "PUT", "DELETE")},
    **{f"{method} {_PASSING}/subscriptionExpirationTime": _UNKNOWN for method in ("GET", "POST", "DELETE")},
    **{f"{method} {_PASSING}/entryFilters": _REFUSED for method in ("GET", "POST", "DELETE")},
    **{f"{method} {_PASSING}/subscription/{{subName}}/replicatedSubscriptionStatus": _REFUSED for method in ("GET", "POST")},
    f"PUT {_PASSING}/subscription/{{subscriptionName}}": _REFUSED,
    f"POST {_PASSING}/terminate": _REFUSED,
    f"POST {_PASSING}/trim": _REFUSED,
    f"DELETE {_PASSING}/truncate": _REFUSED,
    f"GET {_PASSING}/getMessageIdByIndex": _REFUSED,
    f"GET {_PASSING}/permissions": _PROXY,
    f"POST {_PASSING}/permissions/{{role}}": _PROXY,
    f"DELETE {_PASSING}/permissions/{{role}}": _PROXY,
    f"POST {_PASSING}/createMissedPartitions": _LOOKUP,
    f"GET {_PASSING}/internal-info": _LOOKUP,
    **{f"{method} {_NAMESPACE}/allowedTopicPropertyKeysForMetrics": _ABSENT for method in ("GET", "POST", "DELETE")},
    f"GET {_NAMESPACE}/{{bundle}}/topicHashPositions": _ABSENT,
    "POST /admin/v2/namespaces/grantPermissionsOnTopics": _ABSENT,
    "POST /admin/v2/namespaces/revokePermissionsOnTopics": _ABSENT,
    "POST /topics/persistent/{tenant}/{namespace}/{topic}/partitions/{partition}": _ABSENT,
    "POST /topics/non-persistent/{tenant}/{namespace}/{topic}/partitions/{partition}": _ABSENT,
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility": _PROXY,
    "DELETE /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema": _PROXY,
}
"""`METHOD path`: the reason."""

BY_PREFIX: Mapping[str, str] = {
    "/admin/v3/transactions/": "Apache tells whoever is known what transactions of whichever topic do; here super-users",
}
"""Beginning of a path: the reason."""

_TAKES_PART = (
    "Apache lets everybody name any topic and subscription as one of their transaction, and then writes markers to it;"
    " here it is for those who may publish and consume there"
)
_NO_SUCH_CONSUMER = "there is none: Apache is silent, here whoever asks for an answer is told"
_STATS_OF_NONE = "there is none: Apache fails to make the answer and ends the connection, here the error is told"
_MARKERS = "only for super-users there as here; others are told so by AuthorizationError, there by another code"

BY_COMMAND: Mapping[str, str] = {
    "GET_SCHEMA": _OPEN,
    "GET_OR_CREATE_SCHEMA": _OPEN,
    "ACK after SUBSCRIBE": _NO_SUCH_CONSUMER,
    "ACK of no consumer": _NO_SUCH_CONSUMER,
    "CONSUMER_STATS after SUBSCRIBE": _STATS_OF_NONE,
    "CONSUMER_STATS of no consumer": _STATS_OF_NONE,
    "ADD_PARTITION_TO_TXN of one's own": _TAKES_PART,
    "ADD_SUBSCRIPTION_TO_TXN of one's own": _TAKES_PART,
    "ADD_PARTITION_TO_TXN of another's transaction": _TAKES_PART,
    "ADD_SUBSCRIPTION_TO_TXN of another's transaction": _TAKES_PART,
    "END_TXN_ON_PARTITION": _MARKERS,
    "END_TXN_ON_SUBSCRIPTION": _MARKERS,
}
"""Name of the conversation: the reason."""

NOT_APACHES = frozenset(
    {
        "GET /admin/v2/bookies/local-reads",
        "GET /admin/v2/brokers/processes",
        "GET /admin/v2/non-persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/holes",
        "GET /admin/v2/persistent/{tenant}/{namespace}/{topic}/subscription/{subscription}/holes",
        "GET /admin/namespaces/{cluster}/antiAffinity/{group}",  # of the first version, which were not recorded
        "GET /docs",
        "GET /openapi.json",
        "GET /metrics",
        "GET /metrics/",
        "POST /admin/v2/metadata/migration/start",
        "GET /admin/v2/metadata/migration/status",
    }
)
"""Routes that an Apache 4.0.8 does not have, or not under its authorization, or that were not recorded there."""
