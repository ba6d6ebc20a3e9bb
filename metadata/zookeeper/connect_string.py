"""Addresses of ZooKeeper in Apache's settings: `host:port,host:port/chroot`. Pure.

`metadataStoreUrl` puts `zk:` before it (Pulsar's ZKMetadataStore); `metadataServiceUri` is
`zk+hierarchical://host:port;host:port/ledgers` (BookKeeper's ServiceURI), where the path is that of the ledgers and no
chroot, or `metadata-store:zk:host:port/chroot/ledgers`.
"""

import re
from dataclasses import dataclass

from metadata.store import MetadataError

DEFAULT_PORT = 2181
_SERVICE_URI = re.compile(r"zk\+?(?P<manager>[a-z]*)://(?P<servers>[^/]+)(?P<path>/.*)?")
_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/,\[\]]+)(:(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class ServiceUri:
    """Servers with chroot, as `KazooSession` takes them, the ledgers' root below it, and the kind of ledger manager."""

    servers: str
    ledgers_root: str
    manager: str


def servers_of(url: str) -> str:
    """Servers in `metadataStoreUrl`; MetadataError says what is wrong with it."""
    servers, slash, chroot = url.removeprefix("zk:").partition("/")
    return _checked(servers.split(","), url) + (slash + chroot.strip("/")).rstrip("/")


def parse_service_uri(uri: str) -> ServiceUri:
    """Servers in `metadataServiceUri`; MetadataError."""
    if uri.startswith("metadata-store:"):
        servers, _, path = servers_of(uri.removeprefix("metadata-store:")).partition("/")
        chroot, _, last = f"/{path}".rpartition("/") if path else ("", "", "")
        return ServiceUri(servers + chroot, f"/{last or 'ledgers'}", "hierarchical")
    match = _SERVICE_URI.fullmatch(uri)
    if match is None:
        raise MetadataError(f"metadataServiceUri {uri!r}: expected zk+hierarchical://host:port;host:port/ledgers")
    servers = _checked(re.split("[;,]", match["servers"]), uri)
    return ServiceUri(servers, (match["path"] or "/ledgers").rstrip("/"), match["manager"] or "hierarchical")


def _checked(servers: list[str], url: str) -> str:
    found = []
    for server in servers:
        match = _SERVER.fullmatch(server.strip())
        if match is None or int(match[3] or DEFAULT_PORT) > 0xFFFF:
            raise MetadataError(
                f"{url!r}: {server.strip()!r} is not a ZooKeeper server; expected zk:host:port,host:port/chroot"
            )
        found.append(f"{match[1]}:{match[3] or DEFAULT_PORT}")
    return ",".join(found)
