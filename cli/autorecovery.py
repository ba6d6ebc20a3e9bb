"""The composition of autorecovery as a process of its own. Owns no metadata: that is handed in."""

import socket

from bookie.server.settings import BookieServerSettings
from bookkeeper.repair.auto_recovery import AutoRecovery
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.settings import RepairSettings
from cli.configuration import Configuration
from metadata.sessions import Sessions
from metadata.store import MetadataStore
from ports.clock import Clock
from ports.rng import Rng

SETTINGS = (BookieServerSettings, RepairSettings)
"""Of a bookie's server only where the metadata is, and whose name it goes by."""


def owner_name(settings: BookieServerSettings) -> str:
    """Under which it stands for election and takes locks: a bookie's id where there is one on this host, as Apache has it."""
    return settings.bookie_id or f"{settings.advertised_address or socket.gethostname()}:{settings.bookie_port}"


def auto_recovery(
    configuration: Configuration, clock: Clock, rng: Rng, store: MetadataStore, sessions: Sessions
) -> tuple[str, AutoRecovery]:
    """Its name and itself, not started. BadSetting."""
    owner = owner_name(configuration.settings(BookieServerSettings))
    client = RepairClient(store, configuration.settings(RepairSettings), clock, rng, owner)
    return owner, AutoRecovery(client, sessions)
