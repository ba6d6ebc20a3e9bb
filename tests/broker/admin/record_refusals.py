"""Wrong requests of many kinds, and a script that writes down how an Apache Pulsar refuses each.

    python -m tests.broker.admin.record_refusals http://127.0.0.1:8080 > tests/broker/admin/apache-4.0.8-refusals.jsonl

It makes a tenant of its own there, and deletes it at the end. A line is `[method, path, body, status, reason]`; the reason is
null where the answer has none, or is a failure of its own.
"""

import json
import sys
import urllib.error
import urllib.request
from typing import Any

TENANT = "refusals"
_NS, _NONE = f"namespaces/{TENANT}/n", f"namespaces/{TENANT}/none"
_T, _P, _X = (f"persistent/{TENANT}/n/{name}" for name in ("t", "p", "x"))
SETUP: tuple[tuple[str, str, Any], ...] = (
    ("PUT", f"tenants/{TENANT}", {"adminRoles": [], "allowedClusters": ["standalone"]}),
    ("PUT", _NS, {"bundles": {"numBundles": 4}}),
    ("PUT", _T, None),
    ("PUT", f"{_T}/subscription/s", None),
    ("PUT", f"{_P}/partitions", 2),
)
TEARDOWN = (f"{_P}/partitions?force=true", f"{_T}?force=true", _NS, f"tenants/{TENANT}")

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    # what is not there
    ("GET", "tenants/none", None), ("POST", "tenants/none", {"adminRoles": [], "allowedClusters": ["standalone"]}),
    ("DELETE", "tenants/none", None), ("GET", "clusters/none", None), ("DELETE", "clusters/none", None),
    ("GET", "namespaces/none", None), ("PUT", "namespaces/none/n", None), ("GET", _NONE, None), ("DELETE", _NONE, None),
    ("GET", f"{_NONE}/retention", None), ("POST", f"{_NONE}/messageTTL", 5), ("GET", f"{_NONE}/topics", None),
    ("GET", f"{_NONE}/permissions", None), ("POST", f"{_NONE}/permissions/r", ["produce"]), ("GET", f"{_NONE}/bundles", None),
    ("PUT", f"{_NONE}/unload", None), ("GET", f"persistent/{TENANT}/none", None), ("GET", f"{_X}/stats", None),
    ("GET", f"{_X}/internalStats", None), ("GET", f"{_X}/subscriptions", None), ("DELETE", _X, None),
    ("PUT", f"{_X}/unload", None), ("POST", f"{_X}/terminate", None), ("DELETE", f"{_X}/partitions", None),
    ("GET", f"{_X}/lastMessageId", None), ("GET", f"{_X}/retention", None), ("POST", f"{_X}/maxProducers", 3),
    ("GET", f"{_X}/properties", None), ("GET", f"{_X}/partitioned-stats", None), ("PUT", f"{_X}/compaction", None),
    ("GET", f"{_X}/internal-info", None), ("GET", f"{_X}/permissions", None), ("POST", f"{_X}/subscription/s/skip/1", None),
    ("DELETE", f"{_T}/subscription/none", None), ("POST", f"{_T}/subscription/none/skip/1", None),
    ("POST", f"{_T}/subscription/none/skip_all", None), ("POST", f"{_T}/subscription/none/resetcursor/1", None),
    ("GET", f"{_T}/subscription/none/position/1", None), ("POST", f"{_T}/subscription/none/expireMessages/5", None),
    ("GET", f"{_T}/subscription/none/properties", None), ("GET", f"{_T}/subscription/s/position/1", None),
    ("GET", f"{_T}/ledger/999999/entry/0", None), ("GET", f"{_T}/examinemessage", None),
    ("GET", f"schemas/{TENANT}/n/t/schema", None), ("GET", f"schemas/{TENANT}/n/t/schema/7", None),
    ("GET", "clusters/none/failureDomains/d", None), ("GET", "clusters/standalone/namespaceIsolationPolicies/p", None),
    # what is there already, or of another kind
    ("PUT", f"tenants/{TENANT}", {"adminRoles": [], "allowedClusters": ["standalone"]}), ("PUT", _NS, None), ("PUT", _T, None),
    ("PUT", f"{_T}/partitions", 2), ("PUT", f"{_P}/partitions", 2), ("PUT", _P, None), ("DELETE", _P, None),
    ("DELETE", f"{_T}/partitions", None), ("POST", f"{_T}/partitions", 3), ("POST", f"{_P}/partitions", 1),
    ("PUT", f"{_T}/subscription/s", None), ("DELETE", _NS, None), ("DELETE", f"tenants/{TENANT}", None),
    ("GET", f"{_P}/stats", None), ("GET", f"{_P}/internalStats", None), ("GET", f"{_P}/lastMessageId", None),
    ("GET", f"{_P}/examinemessage", None), ("GET", f"{_T}/partitioned-stats", None), ("POST", f"{_P}/terminate", None),
    ("POST", f"{_T}/terminate/partitions", None), ("GET", f"{_P}/subscription/s/position/1", None),
    ("PUT", "clusters/standalone", {"serviceUrl": "http://a:1"}),
    # what cannot be
    ("PUT", "tenants/bad%20name", {"adminRoles": [], "allowedClusters": ["standalone"]}),
    ("PUT", "tenants/a", {"adminRoles": [], "allowedClusters": ["none"]}),
    ("PUT", "tenants/a", {"adminRoles": [], "allowedClusters": []}), ("PUT", "clusters/bad%20name", {"serviceUrl": "http://a:1"}),
    ("PUT", f"namespaces/{TENANT}/bad%20name", None),
    ("PUT", f"{_P}-partition-0", None), ("PUT", f"{_X}-partition-0", None), ("PUT", f"{_X}-partition-0/partitions", 2),
    ("PUT", f"{_X}/partitions", 0), ("PUT", f"{_X}/partitions", -1), ("POST", f"{_NS}/messageTTL", -5),
    ("POST", f"{_NS}/retention", {"retentionTimeInMinutes": -3, "retentionSizeInMB": 3}),
    ("POST", f"{_NS}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 3}),
    ("POST", f"{_NS}/maxProducersPerTopic", -1), ("POST", f"{_NS}/maxConsumersPerTopic", -1),
    ("POST", f"{_NS}/maxConsumersPerSubscription", -1), ("POST", f"{_NS}/maxSubscriptionsPerTopic", -1),
    ("POST", f"{_NS}/maxTopicsPerNamespace", -1), ("POST", f"{_NS}/maxUnackedMessagesPerConsumer", -1),
    ("POST", f"{_NS}/subscriptionExpirationTime", -1), ("PUT", f"{_NS}/compactionThreshold", -1),
    ("POST", f"{_NS}/deduplicationSnapshotInterval", -1), ("POST", f"{_NS}/backlogQuota", {"limitSize": 5}),
    ("POST", f"{_NS}/persistence", {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1}),
    ("POST", f"{_NS}/persistence", {"bookkeeperEnsemble": 9, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1}),
    ("POST", f"{_NS}/autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "round"}),
    ("POST", f"{_NS}/autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "partitioned"}),
    ("POST", f"{_NS}/replication", []), ("POST", f"{_NS}/replication", ["none"]),
    ("POST", f"{_NS}/entryFilters", {"entryFilterNames": ""}), ("PUT", f"{_NS}/0x00000000_0x12345678/unload", None),
    ("PUT", f"{_NS}/nonsense/unload", None), ("POST", f"{_NS}/0x00000000_0x12345678/clearBacklog", None),
    ("POST", f"{_T}/messageTTL?messageTTL=-5", None), ("POST", f"{_T}/maxProducers", -1), ("POST", f"{_T}/maxConsumers", -1),
    ("POST", f"{_T}/maxSubscriptionsPerTopic", -1), ("POST", f"{_T}/maxUnackedMessagesOnConsumer", -1),
    ("POST", f"{_T}/maxMessageSize", -1), ("POST", f"{_T}/compactionThreshold", -1),
    ("POST", f"{_T}/retention", {"retentionTimeInMinutes": -3, "retentionSizeInMB": 3}),
    ("POST", f"{_T}/persistence", {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1}),
    ("GET", f"{_P}-partition-0/retention", None), ("POST", f"{_T}/subscription/s/skip/-1", None),
    ("POST", f"{_T}/trim", None),
    ("POST", "brokers/configuration/noSuchKey/5", None), ("DELETE", "brokers/configuration/noSuchKey", None),
    ("POST", "brokers/configuration/clusterName/5", None),
    ("POST", f"schemas/{TENANT}/n/t/schema", {"type": "AVRO", "schema": "no json", "properties": {}}),
    ("POST", f"schemas/{TENANT}/n/t/schema", {"type": "NOPE", "schema": "", "properties": {}}),
)  # fmt: skip


def ask(base: str, method: str, path: str, body: Any) -> tuple[int, str | None]:
    """Status and reason."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/admin/v2/{path}", content, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, None
    except urllib.error.HTTPError as refused:
        try:
            reason = json.loads(refused.read()).get("reason")
            return refused.code, None if refused.code == 500 else reason
        except ValueError:
            return refused.code, None


def main() -> None:
    base = sys.argv[1]
    for each in SETUP:
        ask(base, *each)
    for method, path, body in REQUESTS:
        print(json.dumps([method, path, body, *ask(base, method, path, body)]), flush=True)
    for path in TEARDOWN:
        ask(base, "DELETE", path, None)


if __name__ == "__main__":
    main()
