"""WebSocketSettings: settings of the WebSocket endpoints. Keys are Apache's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebSocketSettings:
    """Apache's defaults."""

    web_socket_service_enabled: bool = False
    """The web ports serve WebSocket sessions of producers, consumers and readers, below /ws."""
    web_socket_max_text_frame_size: int = 1024 * 1024
    """Bytes of the largest message from a WebSocket client, in JSON; a larger one ends the session."""
    web_socket_session_idle_timeout_millis: int = 300_000
    """A session without traffic for so long ends; 0: never."""
    web_socket_ping_duration_seconds: int = -1
    """Interval of pings to WebSocket clients; 0 or less: none."""

    def __post_init__(self) -> None:
        if self.web_socket_max_text_frame_size < 1024:
            raise ValueError("webSocketMaxTextFrameSize: expected at least 1024")
        if self.web_socket_session_idle_timeout_millis < 0:
            raise ValueError("webSocketSessionIdleTimeoutMillis: expected 0 (never) or more")
