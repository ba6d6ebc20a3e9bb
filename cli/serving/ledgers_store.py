"""The metadata that `metadataServiceUri` names, for processes that work on ledgers without being a broker."""

from functools import partial

from bookie.server.settings import BookieServerSettings
from bookkeeper.ledger_metadata.paths import ROOT
from metadata.zookeeper.connect_string import parse_service_uri
from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.store import ZooKeeperStore
from ports.settings import BadSetting


async def open_ledgers_store(settings: BookieServerSettings) -> ZooKeeperStore:
    """BadSetting when metadataServiceUri is not set, or has another root; MetadataError when no server answers."""
    if not settings.metadata_service_uri:
        raise BadSetting("metadataServiceUri is not set: such as zk+hierarchical://host1:2181;host2:2181/ledgers")
    uri = parse_service_uri(settings.metadata_service_uri)
    if uri.ledgers_root != ROOT:
        raise BadSetting(f"metadataServiceUri={settings.metadata_service_uri}: ledgers are under {ROOT} here")
    seconds = settings.zk_timeout / 1000
    return await ZooKeeperStore.open(partial(KazooSession, uri.servers, seconds), servers=uri.servers)
