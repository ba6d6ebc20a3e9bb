"""The composition of autorecovery as a process of its own. Owns no metadata: that is handed in."""

import asyncio
import socket

from bookie.server.security.settings import BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.web.settings import BookieWebSettings
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.repair.auto_recovery import AutoRecovery
from bookkeeper.repair.client import TIMEOUT_SECONDS, RepairClient
from bookkeeper.repair.settings import RepairSettings
from cli.configuration.loading import Configuration
from metadata.sessions import Sessions
from metadata.store import MetadataStore
from ports.clock import Clock
from ports.network.tls import RenewedTls
from ports.rng import Rng

SETTINGS = (BookieServerSettings, BookieSecuritySettings, BookieWebSettings, RepairSettings)
"""Classes of the settings. BookieServerSettings gives only the place of the metadata and the bookie's name; TLS uses the keys
of bookies."""


def owner_name(settings: BookieServerSettings) -> str:
    """Under which it stands for election and takes locks: a bookie's id where there is one on this host, as Apache has it."""
    return settings.bookie_id or f"{settings.advertised_address or socket.gethostname()}:{settings.bookie_port}"


def auto_recovery(
    configuration: Configuration, clock: Clock, rng: Rng, store: MetadataStore, sessions: Sessions
) -> tuple[str, AutoRecovery]:
    """The name of the process and its AutoRecovery, not started. BadSetting, BadTls."""
    owner = owner_name(configuration.settings(BookieServerSettings))
    tls = client_tls(configuration.settings(BookieSecuritySettings))
    bookies = NetworkBookies(store, TIMEOUT_SECONDS, tls=tls)
    client = RepairClient(store, configuration.settings(RepairSettings), clock, rng, owner, bookies)
    return owner, AutoRecovery(client, sessions)


def client_tls(settings: BookieSecuritySettings) -> RenewedTls | None:
    """With which a process of the bookies' own settings speaks to them; None: in the clear. BadTls."""
    files, now = settings.tls_files, asyncio.get_running_loop().time
    if files is None or files.trust is None:
        return None
    return RenewedTls("client", files, settings.tls_cert_files_refresh_duration_seconds, now)
