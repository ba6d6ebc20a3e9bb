"""BookieWebSettings: where a bookie's HTTP is. Keys are Apache's (bookkeeper.conf)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BookieWebSettings:
    """Port 0 picks a free one."""

    http_server_enabled: bool = False
    http_server_host: str = "0.0.0.0"
    http_server_port: int = 8080

    def __post_init__(self) -> None:
        if not 0 <= self.http_server_port <= 65535:
            raise ValueError(f"httpServerPort: expected 0 to 65535, not {self.http_server_port}")
