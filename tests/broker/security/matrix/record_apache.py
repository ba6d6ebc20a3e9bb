"""Asks an Apache Pulsar with authorization on all of `routes.txt` in the name of each role, and writes down what it decides.

    python -m tests.broker.security.matrix.record_apache http://127.0.0.1:8080 BASE64_SECRET > apache-4.0.8.txt

The broker takes tokens signed with the secret; superUserRoles=admin, proxyRoles=proxy. Each change is undone before the next
request. The program still changes the broker that it asks: use one that is thrown away.

A line is `METHOD path letters`, a letter for each of `roles.ROLES`: `A` it may (whatever the answer then was), `1` 401,
`3` 403, `-` not asked.
"""

import base64
import http.client
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

from tests.broker.security.matrix.roles import (
    NAMESPACE,
    ON_NAMESPACE,
    ON_TOPIC,
    ROLES,
    SUBSCRIPTION,
    SUPER_USER,
    TENANT,
    TENANT_ADMINS,
    Who,
    filled,
)
from tests.broker.security.token_maker import token

ROUTES = Path(__file__).with_name("routes.txt")
NOT_ASKED = {"POST /admin/v2/brokers/shutdown"}
"""Routes that are not asked for roles that may use them."""
UNSETTLING = (
    "tenants/{tenant}",
    "/permissions/{role}",
    "subscriptionAuthMode",
    "/replication",
    "allowedClusters",
    "/{subscription}",
)
"""After these and every DELETE everything is put right again."""
OF_ALL_ROUTES_ALIKE = frozenset({"forged", "proxy", "proxy for proxy", "stranger for admin", "stranger for stranger"})
"""Roles that are let in or refused before the route is looked at: these ask one route in twelve."""
LETTERS = {401: "1", 403: "3"}


class Broker:
    """One that is asked, a connection a request."""

    def __init__(self, url: str, secret: bytes) -> None:
        self._address, self._secret = urlsplit(url).netloc, secret

    def ask(self, method: str, path: str, who: Who, body: str = "") -> int:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        try:
            connection.request(method, path, body or None, self._headers(who))
            return connection.getresponse().status
        except TimeoutError:
            return 504
        finally:
            connection.close()

    def _headers(self, who: Who) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if who.role is not None:
            signed = token(who.role or SUPER_USER, secret=self._secret if who.role else b"x" * 32)
            headers["Authorization"] = f"Bearer {signed}"
        return headers | ({"X-Original-Principal": who.original} if who.original else {})

    def set_up(self) -> None:
        """Everything that the roles are about; what is there stays."""
        admin = Who("", SUPER_USER)

        def do(method: str, path: str, body: Any = None) -> None:
            self.ask(method, f"/admin/v2/{path}", admin, "" if body is None else json.dumps(body))

        for tenant, roles in ((TENANT, TENANT_ADMINS), ("other", ("other-admin",))):
            for method in ("PUT", "POST"):
                do(method, f"tenants/{tenant}", {"adminRoles": roles, "allowedClusters": ["standalone"]})
        do("PUT", f"namespaces/{NAMESPACE}")
        do("POST", f"namespaces/{NAMESPACE}/subscriptionAuthMode", "None")
        do("POST", f"namespaces/{NAMESPACE}/replication", ["standalone"])
        for role, action in ON_NAMESPACE.items():
            do("POST", f"namespaces/{NAMESPACE}/permissions/{role}", [action])
        do("POST", f"namespaces/{NAMESPACE}/permissions/subscription/{SUBSCRIPTION}", ["sub-user"])
        for domain in ("persistent", "non-persistent"):
            do("PUT", f"{domain}/{NAMESPACE}/t")
            for role, action in ON_TOPIC.items():
                do("POST", f"{domain}/{NAMESPACE}/t/permissions/{role}", [action])
        do("PUT", f"persistent/{NAMESPACE}/t/subscription/{SUBSCRIPTION}")


def decisions(broker: Broker, method: str, path: str, body: str) -> str:
    """A letter a role."""

    def letter(who: Who) -> str:
        is_dangerous = f"{method} {path}" in NOT_ASKED and who.name in ("admin", "proxy for admin", "tenant-admin")
        if is_dangerous or (who.name in OF_ALL_ROUTES_ALIKE and crc32(path.encode()) % 12):
            return "-"
        status = broker.ask(method, filled(path), who, body)
        if status < 300 and (method == "DELETE" or path.endswith(UNSETTLING)):
            broker.set_up()
        return LETTERS.get(status, "A")

    if method == "GET":
        with ThreadPoolExecutor(3) as pool:
            return "".join(pool.map(letter, ROLES))
    return "".join(map(letter, ROLES))


def main() -> None:
    broker = Broker(sys.argv[1], base64.b64decode(sys.argv[2]))
    broker.set_up()
    for row in ROUTES.read_text().splitlines():
        method, path, body = [*row.split(" ", 2), ""][:3]
        print(method, path, decisions(broker, method, path, body), flush=True)


if __name__ == "__main__":
    main()
