"""ClusterSettings: metadata stores of a broker's cluster. Keys are Apache's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of a broker in a cluster, beside `metadataStoreUrl`."""

    configuration_metadata_store_url: str = ""
    """The same as metadataStoreUrl, or empty: a store apart is refused."""
    bookkeeper_metadata_service_uri: str = ""
    """Empty: /ledgers in metadataStoreUrl. Elsewhere is refused."""
    bookkeeper_client_timeout_in_seconds: int = 30
    """How long a bookie may leave a request without an answer."""

    def __post_init__(self) -> None:
        if self.bookkeeper_client_timeout_in_seconds < 1:
            raise ValueError("bookkeeperClientTimeoutInSeconds: at least 1")
