"""ZooKeeperSettings: where the metadata is, and how long to wait for it. Keys are Apache's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """`metadata_store_url` is `zk:host:port,host:port/chroot`; `zk:` may be missing."""

    metadata_store_url: str = ""
    """The ZooKeeper servers of the cluster, such as zk:host1:2181,host2:2181, with a chroot where there is one."""
    metadata_store_session_timeout_millis: int = 10000
    """After as long without a word the broker has lost what it owns; ZooKeeper rounds it up to a tick. (Apache: 30000.)"""
    metadata_store_operation_timeout_seconds: int = 30
    """Time that one operation on the metadata may take before it fails."""

    def __post_init__(self) -> None:
        if self.metadata_store_session_timeout_millis < 1000:
            raise ValueError(f"metadataStoreSessionTimeoutMillis={self.metadata_store_session_timeout_millis}: at least 1000")
        if self.metadata_store_operation_timeout_seconds < 1:
            raise ValueError(
                f"metadataStoreOperationTimeoutSeconds={self.metadata_store_operation_timeout_seconds}: at least 1"
            )
