"""ConnectionSettings: settings of a connection. Keys are Apache's; two defaults differ, said where."""

from dataclasses import dataclass

FRAME_PADDING_BYTES = 10 * 1024
"""Room for command and metadata beside the largest message (Apache's MESSAGE_SIZE_FRAME_PADDING)."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """0 means no limit for the two numbers of connections."""

    keep_alive_interval_seconds: int = 30
    """Interval at which a silent connection is asked for a sign of life; without one by the next, it is closed."""
    connection_liveness_check_timeout_millis: int = 5000
    """Time for a peer to answer a PING when another client asks for its producer name, its exclusive subscription or its hash
    ranges. 0: it is not asked, and the other one is refused."""
    max_message_size: int = 5 * 1024 * 1024
    """Bytes of the largest message that is taken; clients get it in CONNECTED."""
    max_pending_publish_requests_per_connection: int = 10_000
    """Messages in flight at which reading stops, until half of them are stored. Apache: 1000, at its price per message."""
    max_message_publish_buffer_size_in_mb: int = 64
    """Over all connections. Apache: half of the JVM's direct memory."""
    broker_max_connections: int = 0
    """Connections of clients that this broker lets in."""
    broker_max_connections_per_ip: int = 0
    """Connections of one client address that this broker lets in."""
    max_consumer_metadata_size: int = 1024
    """Bytes of the properties that a consumer may have."""
    exposing_broker_entry_metadata_to_client_enabled: bool = False
    """Metadata that brokerEntryMetadataInterceptors stored is sent to clients that say they know it."""

    def __post_init__(self) -> None:
        if self.keep_alive_interval_seconds < 1:
            raise ValueError("keepAliveIntervalSeconds: expected at least 1")
        if self.connection_liveness_check_timeout_millis < 0:
            raise ValueError("connectionLivenessCheckTimeoutMillis: expected 0 (off) or more")
        if not 1024 <= self.max_message_size <= 1 << 29:
            raise ValueError("maxMessageSize: expected 1024 to 536870912")
        if min(self.max_pending_publish_requests_per_connection, self.max_message_publish_buffer_size_in_mb) < 1:
            raise ValueError("maxPendingPublishRequestsPerConnection, maxMessagePublishBufferSizeInMB: expected at least 1")

    @property
    def frame_bytes_max(self) -> int:
        """Largest size of a whole frame, its length field included (as Netty counts)."""
        return self.max_message_size + FRAME_PADDING_BYTES
