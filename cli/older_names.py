"""Older names of Apache's settings that still count where the newer one is not set. Pure.

`zkServers` and `zkLedgersRootPath` of a bookie become a metadataServiceUri (BookKeeper's AbstractConfiguration does that),
`zookeeperServers` of a broker a metadataStoreUrl (Pulsar's ServiceConfiguration).
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
    _same("metadataStoreSessionTimeoutMillis", "zooKeeperSessionTimeoutMillis"),
    _same("metadataStoreOperationTimeoutSeconds", "zooKeeperOperationTimeoutSeconds"),
)
"""The first whose older name is set wins."""
UNSET = ("", "null")


def with_newer_names(values: Mapping[str, str]) -> dict[str, str]:
    """And what the older names among them say."""
    found = dict(values)
    for each in _NEWER:
        if values.get(each.older, "") not in UNSET and found.get(each.key, "") in UNSET:
            found[each.key] = each.value_of(values)
    return found
