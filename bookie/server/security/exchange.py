"""Exchange: how one peer proves who it is. Pure: what came in, what goes out, and whether that was enough."""

from collections.abc import Mapping
from typing import Any, Protocol


class Refused(Exception):
    """The peer is not who it must be; the message says why, for the log alone."""


class Exchange(Protocol):
    """Exchange on one connection. `plugin` is the name that both sides' messages carry."""

    plugin: str

    def secured(self, certificate: Mapping[str, Any]) -> bool:
        """TLS is up; the certificate as `ssl.SSLSocket.getpeercert` gives it, empty when none was asked for. Whether that
        proves enough; Refused."""

    def heard(self, payload: bytes) -> tuple[bytes, bool]:
        """The answer to a message, and whether the peer has proved enough now. Refused."""
