"""Requests for each of Apache's routes that give it something to do, and the effects that can be seen.

The routes are a table of facts: `apache-4.2.4-routes.txt`, tier, methods and path as its annotations have them. Routes of
non-persistent topics are those of persistent ones, with another word in the path.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.broker.admin.admin_world import NAME, AdminWorld, Answer
from tests.broker.topic.topic_world import SUBSCRIBE, ConsumerEnd, payload, send_run, settle

TABLE = Path(__file__).with_name("apache-4.2.4-routes.txt")
PERSISTENT, PASSING = "/admin/v2/persistent/", "/admin/v2/non-persistent/"
NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC = PERSISTENT + "{tenant}/{namespace}/{topic}"
PASSED = PASSING + "{tenant}/{namespace}/{topic}"


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """One method on one path."""

    tier: str
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def last(self) -> str:
        """Last segment of the path."""
        return self.path.rsplit("/", 1)[1]

    @property
    def is_of_topic(self) -> bool:
        return self.path.startswith((PERSISTENT, PASSING)) and "{topic}" in self.path


def routes() -> Iterator[Route]:
    """All of Apache's routes, those of non-persistent topics too."""
    for line in TABLE.read_text().splitlines():
        tier, methods, path = line.split()
        for method in methods.split(","):
            yield Route(tier, method, path)
            if path.startswith(PERSISTENT):
                yield Route(tier, method, path.replace(PERSISTENT, PASSING, 1))


# ---- What is asked

_VALUES: Mapping[str, str] = {
    "tenant": "public",
    "namespace": "default",
    "topic": "t",
    "topic-domain": "persistent",
    "bundle": "0x80000000_0xc0000000",
    "subName": "s",
    "subscription": "s",
    "subscriptionName": "fresh",
    "role": "somebody",
    "cluster": "standalone",
    "clusterName": "standalone",
    "broker": "broker:8080",
    "brokerId": "broker:8080",
    "bookie": "127.0.0.1:3181",
    "domainName": "here",
    "policyName": "gold",
    "configName": "maxTopicsPerNamespace",
    "configValue": "77",
    "expireTimeInSeconds": "1",
    "messagePosition": "1",
    "numMessages": "3",
    "timestamp": "5000",
    "ledgerId": "3",
    "entryId": "2",
    "key": "colour",
    "value": "red",
    "version": "0",
}
"""Values for the braces of a path; the bundle is the one with the topic."""
_OF_PARTITIONED = (
    "/partitions", "/partitioned-stats", "/partitioned-internalStats", "/createMissedPartitions", "/terminate/partitions",
)  # fmt: skip
"""Ends of paths that are asked of the partitioned topic."""
_OF_ONE: Mapping[str, Mapping[str, str]] = {
    "PUT /admin/v2/clusters/{cluster}": {"cluster": "another"},
    "POST /admin/v2/clusters/{cluster}": {"cluster": "spare"},
    "DELETE /admin/v2/clusters/{cluster}": {"cluster": "spare"},
    "PUT /admin/v2/tenants/{tenant}": {"tenant": "another"},
    "DELETE /admin/v2/tenants/{tenant}": {"tenant": "spare"},
    f"PUT {NAMESPACE}": {"namespace": "another"},
    f"DELETE {NAMESPACE}": {"namespace": "spare"},
    **{
        f"PUT {domain}{{tenant}}/{{namespace}}/{{topic}}{end}": {"topic": "another"}
        for domain in (PERSISTENT, PASSING)
        for end in ("", "/partitions")
    },
}
_RATE = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": 20, "ratePeriodInSecond": 2}
_SCHEMA = {"type": "STRING", "schema": "", "properties": {"a": "b"}}
_BODIES: Mapping[str, Any] = {
    "antiAffinity": "group",
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": False},
    "autoTopicCreation": {"allowAutoTopicCreation": False},
    "backlogQuota": {"limitSize": 1000, "limitTime": 60, "policy": "producer_exception"},
    "backlogSize": {"ledgerId": 3, "entryId": 2},
    "compactionThreshold": 1000,
    "compatibility": _SCHEMA,
    "deduplication": True,
    "deduplicationEnabled": True,
    "deduplicationSnapshotInterval": 77,
    "delayedDelivery": {"tickTime": 2000, "active": False, "maxDeliveryDelayInMillis": 5},
    "dispatchRate": _RATE,
    "encryptionRequired": True,
    "inactiveTopicPolicies": {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 100,
        "deleteWhileInactive": True,
    },
    "isAllowAutoUpdateSchema": False,
    "permissions/subscription/{subscription}": ["somebody"],
    "permissions/{role}": ["produce"],
    "persistence": {
        "bookkeeperEnsemble": 1,
        "bookkeeperWriteQuorum": 1,
        "bookkeeperAckQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 3.5,
    },
    "publishRate": {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": 50},
    "replication": ["standalone"],
    "replicatorDispatchRate": _RATE,
    "resetcursor": {"ledgerId": 3, "entryId": 6},
    "retention": {"retentionTimeInMinutes": 60, "retentionSizeInMB": 20_000},
    "schema": _SCHEMA,
    "schemaCompatibilityStrategy": "BACKWARD",
    "schemaValidationEnforced": True,
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 10},
    "subscriptionDispatchRate": _RATE,
    "subscriptionTypesEnabled": ["Shared"],
    "version": _SCHEMA,
    "expireMessages": {"ledgerId": 3, "entryId": 4},
    "failureDomains/{domainName}": {"brokers": ["broker:8080"]},
    "namespaceIsolationPolicies/{policyName}": {
        "namespaces": ["gold/.*"],
        "primary": ["broker"],
        "secondary": [],
        "auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "90"}},
    },
    "racks-info/{bookie}": {"rack": "/r1", "hostname": "h"},
    "clusters/{cluster}": {"serviceUrl": "http://elsewhere:8080"},
    "tenants/{tenant}": {"adminRoles": ["chief"], "allowedClusters": ["standalone"]},
    "properties": {"colour": "blue"},
    "partitions": 3,
    "subscription/{subscriptionName}": {"ledgerId": 3, "entryId": 4},
}
"""Request bodies by the end of the path; the body of a maximum is 7."""
_IN_QUERY = ("messageTTL", "subscriptionExpirationTime")
"""A number, in the query of a topic's route, in the body of a namespace's."""
_QUERIES: Mapping[str, str] = {
    "POST /admin/v2/bookies/racks-info/{bookie}": "?group=default",
    f"DELETE {TOPIC}/properties": "?key=colour",
    f"DELETE {PASSED}/properties": "?key=colour",
    f"DELETE {PASSED}": "?force=true",
    f"DELETE {PASSED}/subscription/{{subName}}": "?force=true",
    f"DELETE {NAMESPACE}/{{bundle}}": "?force=true",
}


def body_of(route: Route) -> Any:
    """Body of the request; None: it has none."""
    if route.method in ("GET", "DELETE"):
        return None
    if ends := [end for end in _BODIES if route.path.endswith("/" + end)]:
        return _BODIES[max(ends, key=len)]
    is_number = route.last.startswith("max") or (route.last in _IN_QUERY and not route.is_of_topic)
    return 7 if is_number else None


def path_of(route: Route) -> str:
    """With something in its braces that is there."""
    others = {"topic": "p"} if route.path.endswith(_OF_PARTITIONED) else {}
    path = route.path
    for name, value in {**_VALUES, **others, **_OF_ONE.get(str(route), {})}.items():
        path = path.replace(f"{{{name}}}", value)
    if route.is_of_topic and route.method == "POST" and route.last in _IN_QUERY:
        return f"{path}?{route.last}=7"
    return path + _QUERIES.get(str(route), "")


async def ask(world: AdminWorld, route: Route) -> Answer:
    return await world.call(route.method, path_of(route), body_of(route))


# ---- What is there before

_SETTERS: Mapping[str, Route] = {
    each.path: each
    for each in routes()
    if each.method in ("PUT", "POST") and each.tier != "T3" and not each.path.endswith(("/partitions", "/compaction"))
}
_BY_ANOTHER: Mapping[str, str] = {
    NAMESPACE + "/backlogQuotaMap": NAMESPACE + "/backlogQuota",
    NAMESPACE + "/permissions": NAMESPACE + "/permissions/{role}",
    NAMESPACE + "/permissions/subscription": NAMESPACE + "/permissions/subscription/{subscription}",
    NAMESPACE + "/permissions/{subscription}/{role}": NAMESPACE + "/permissions/subscription/{subscription}",
    NAMESPACE + "/property/{key}": NAMESPACE + "/property/{key}/{value}",
    TOPIC + "/policies": TOPIC + "/maxProducers",
    PASSED + "/policies": PASSED + "/maxProducers",
    "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies": (
        "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}"
    ),
    "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/brokers": (
        "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}"
    ),
    "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/brokers/{broker}": (
        "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}"
    ),
    "/admin/v2/brokers/configuration/{configName}": "/admin/v2/brokers/configuration/{configName}/{configValue}",
    "/admin/v2/schemas/{tenant}/{namespace}/{topic}/metadata": "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema",
    "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schemas": "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema",
    "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema/{version}": (
        "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema"
    ),
}
"""Paths that tell or remove something which another path sets, each with that path."""


def setter_of(route: Route) -> Route | None:
    """Route to ask first, so that `route` has something to tell or remove."""
    if route.method not in ("GET", "DELETE"):
        return None
    return _SETTERS.get(_BY_ANOTHER.get(route.path, route.path))


async def prepare(world: AdminWorld) -> None:
    """A topic of each kind, with messages and a subscription; a partitioned one; a cluster, tenant and namespace to spare."""
    await world.done("PUT", "t/subscription/s", {"ledgerId": -1, "entryId": -1})
    topic = await world.loaded(f"{NAME}/t")
    await topic.ledger.append(send_run(range(10), [payload(publish_time=1000 * at, key="k") for at in range(1, 11)]).entries)
    passing = await world.loaded("non-" + f"{NAME}/t")
    await passing.subscribe(SUBSCRIBE, ConsumerEnd())
    for path, body in (
        (f"{PERSISTENT}public/default/p/partitions", 2),
        (f"{PASSING}public/default/p/partitions", 2),
        ("/admin/v2/clusters/spare", {"serviceUrl": "http://spare:8080"}),
        ("/admin/v2/tenants/spare", {"adminRoles": [], "allowedClusters": ["standalone"]}),
        ("/admin/v2/namespaces/public/spare", None),
    ):
        assert (await world.call("PUT", path, body)).status in (200, 204)
    for index in range(2):
        await world.loaded(f"{NAME}/p-partition-{index}")
    await settle()


# ---- What can be seen

_ROOTS = ("admin", "bookies", "ledgers", "loadbalance", "managed-ledgers", "namespace", "schemas")


async def seen(world: AdminWorld) -> Any:
    """Everything that a change may leave behind: metadata, and of each loaded topic its policies, log and subscriptions."""
    stored: dict[str, bytes] = {}

    async def walk(path: str) -> None:
        found = await world.store.get(path)
        if found is not None:
            stored[path] = found.value
        for child in await world.store.children(path):
            await walk(f"{path}/{child}")

    for root in _ROOTS:
        await walk(f"/{root}")
    return stored, {name: _state(topic) for name, topic in world.service.catalogue.loaded_topics.items()}


def _state(topic: Any) -> Any:
    operations, log = topic.operations, topic.operations.log
    subscriptions = {
        name: (each.msg_backlog, operations.subscription_properties(name)) for name, each in topic.stats().subscriptions.items()
    }
    return topic.upkeep.policies, subscriptions, dict(log.properties), log.last_confirmed, log.is_terminated, log.ledgers()
