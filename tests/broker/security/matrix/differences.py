"""Where we decide otherwise than Apache Pulsar 4.0.8 does, and why. We are the stricter but for routes that do nothing."""

from collections.abc import Mapping

_OPEN = "Apache asks for no permission: everybody who is known may; here it is a permission of the topic or namespace"
_PROXY = (
    "Apache asks whether the proxy's role may, and not for whom it speaks (as in CVE-2023-30429); here both must be allowed"
)
_LOOKUP = "Apache lets everybody do it who may look the topic up; here it is for the tenant's admins"
_NAMESPACE, _TOPIC = "/admin/v2/namespaces/{tenant}/{namespace}", "/admin/v2/persistent/{tenant}/{namespace}/{topic}"

BY_ROUTE: Mapping[str, str] = {
    **{f"{method} {_NAMESPACE}/properties": _PROXY for method in ("GET", "PUT", "DELETE")},
    **{f"{method} {_NAMESPACE}/property/{{key}}": _PROXY for method in ("GET", "DELETE")},
    f"PUT {_NAMESPACE}/property/{{key}}/{{value}}": _PROXY,
    f"GET {_NAMESPACE}/scanOffloadedLedgers": _OPEN,
    f"GET {_TOPIC}/getMessageIdByIndex": _OPEN,
    f"PUT {_TOPIC}/properties": _OPEN,
    **{f"{method} {_TOPIC}/maxMessageSize": _PROXY for method in ("GET", "POST", "DELETE")},
    **{
        f"{method} {_TOPIC}/subscriptionExpirationTime": "Apache 4.0.8 has no such route: 404 to all"
        for method in ("GET", "POST", "DELETE")
    },
    f"GET {_TOPIC}/permissions": _PROXY,
    f"POST {_TOPIC}/permissions/{{role}}": _PROXY,
    f"DELETE {_TOPIC}/permissions/{{role}}": _PROXY,
    f"POST {_TOPIC}/createMissedPartitions": _LOOKUP,
    f"GET {_TOPIC}/internal-info": _LOOKUP,
    f"DELETE {_TOPIC}/truncate": _LOOKUP,
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility": _PROXY,
    "DELETE /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema": _PROXY,
}
"""`METHOD path`: the reason."""

BY_PREFIX: Mapping[str, str] = {
    "/admin/v3/transactions/": "Apache lets in whoever is known, as far as was seen without transactions; here super-users",
    "/admin/v2/non-persistent/": "topics that are not persistent are not there: 501 to all who may list the namespace's topics",
}
"""Of paths."""
