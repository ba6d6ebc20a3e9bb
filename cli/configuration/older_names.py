"""Older names of Apache's settings, with what they meant. Pure.

`zkServers` and `zkLedgersRootPath` of a bookie become a metadataServiceUri (BookKeeper's AbstractConfiguration does that),
`zookeeperServers` of a broker or proxy a metadataStoreUrl (Pulsar's ServiceConfiguration), where the newer name is not set. An
older name of a number counts before the newer one where it is more than 0, as in ServiceConfiguration's getters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

LEDGERS_ROOT = "/ledgers"


@dataclass(frozen=True, slots=True)
class _Newer:
    """`value_of`: from all values that are set, where `older` is."""

    key: str
    older: str
    value_of: Callable[[Mapping[str, str]], str]


def _same(key: str, older: str) -> _Newer:
    return _Newer(key, older, lambda values: values[older])


def _as_zookeeper(key: str, older: str) -> _Newer:
    return _Newer(key, older, lambda values: f"zk:{values[older]}")


def _service_uri(values: Mapping[str, str]) -> str:
    root = values.get("zkLedgersRootPath") or LEDGERS_ROOT
    return f"zk+hierarchical://{values['zkServers'].replace(',', ';')}{root}"


_NEWER = (
    _same("journalDirectories", "journalDirectory"),
    _Newer("metadataServiceUri", "zkServers", _service_uri),
    _as_zookeeper("metadataStoreUrl", "zookeeperServers"),
    _as_zookeeper("configurationMetadataStoreUrl", "configurationStoreServers"),
    _as_zookeeper("configurationMetadataStoreUrl", "globalZookeeperServers"),
)
"""The first whose older name is set wins."""
_NUMBERS = {
    "zooKeeperSessionTimeoutMillis": "metadataStoreSessionTimeoutMillis",
    "zookeeperSessionTimeoutMs": "metadataStoreSessionTimeoutMillis",
    "zooKeeperOperationTimeoutSeconds": "metadataStoreOperationTimeoutSeconds",
    "managedLedgerMaxUnackedRangesToPersistInZooKeeper": "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
}
UNSET = ("", "null")
_TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")


def with_newer_names(values: Mapping[str, str]) -> dict[str, str]:
    """The values, and beside them the newer names of those that have older ones."""
    found = dict(values)
    for each in _NEWER:
        if values.get(each.older, "") not in UNSET and found.get(each.key, "") in UNSET:
            found[each.key] = each.value_of(values)
    found.update({newer: values[older] for older, newer in _NUMBERS.items() if _is_positive(values.get(older, ""))})
    if values.get("subscriptionKeySharedEnable", "").lower() == "false":
        types = values.get("subscriptionTypesEnabled", ",".join(_TYPES)).split(",")
        found["subscriptionTypesEnabled"] = ",".join(each for each in types if each.strip() != "Key_Shared")
    return found


def _is_positive(text: str) -> bool:
    return text.isdecimal() and int(text) > 0
