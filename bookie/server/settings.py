"""BookieServerSettings: a bookie's address to listen on, and its registered name. Keys are Apache's (bookkeeper.conf)."""

from dataclasses import dataclass

SMALLEST_FRAME_BYTES = 1024


@dataclass(frozen=True, slots=True)
class BookieServerSettings:
    """Port 0 picks a free one."""

    bookie_port: int = 3181
    """The port that clients of the bookie connect to."""
    advertised_address: str | None = None
    """Host under which clients find the bookie. None: the host's name resolved (useHostNameAsBookieID: the name itself)."""
    bookie_id: str | None = None
    """None: `host:port`. Whatever it is, it must stay the same for as long as the directories are in use."""
    use_host_name_as_bookie_id: bool = False
    """The bookie is registered under its host's name, and not under its address."""
    allow_loopback: bool = False
    """Without it a bookie does not register under an address that other machines cannot reach."""
    metadata_service_uri: str | None = None
    """Such as zk+hierarchical://host1:2181;host2:2181/ledgers."""
    zk_timeout: int = 10_000
    """Milliseconds without an answer after which the session with ZooKeeper, and the registration with it, is lost."""
    netty_max_frame_size_bytes: int = 5 * 1024 * 1024 + 10 * 1024
    """Bytes of a whole frame, with its length field. Apache: 5242880; Pulsar sets this value, for its largest message."""
    max_batch_read_size: int = 5 * 1024 * 1024
    """Bytes of the largest answer to a read of several entries."""
    server_sock_keepalive: bool = True
    """The system notices clients that are gone without a word."""

    def __post_init__(self) -> None:
        if not 0 <= self.bookie_port <= 65535:
            raise ValueError(f"bookiePort: expected 0 to 65535, not {self.bookie_port}")
        if not SMALLEST_FRAME_BYTES <= self.netty_max_frame_size_bytes <= 1 << 30:
            raise ValueError(f"nettyMaxFrameSizeBytes: expected {SMALLEST_FRAME_BYTES} to {1 << 30}")
        if self.zk_timeout < 1000:
            raise ValueError("zkTimeout: expected at least 1000 (milliseconds)")
        if not 1 <= self.max_batch_read_size <= self.netty_max_frame_size_bytes:
            raise ValueError("maxBatchReadSize: expected 1 to nettyMaxFrameSizeBytes")
