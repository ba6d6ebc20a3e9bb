"""A standalone in the process of the test, with sockets and files as a real one, so that its objects can be counted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bookie.upkeep.garbage import GarbageCollector
from bookkeeper.ledger_metadata.paths import ROOT, ledger_path
from cli.broker.web_ports import bound_web_ports
from cli.configuration.loading import CONF, load_configuration
from cli.standalone.server import Standalone
from metadata.embedded import EmbeddedStore
from metadata.store import MetadataStore
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng

SETTINGS = ("brokerServicePort=0", "webServicePort=0", "transactionCoordinatorEnabled=true", "forceDeleteNamespaceAllowed=true")


@dataclass(frozen=True, slots=True)
class StandaloneHere:
    """`port` of the broker, `web_port` of the admin REST, both at 127.0.0.1."""

    standalone: Standalone
    store: MetadataStore
    port: int
    web_port: int

    async def collect_garbage(self) -> None:
        """Collects garbage like the bookie in two rounds, the first of which proves nothing yet."""
        for bookie in self.standalone._bookies.values():
            collector = GarbageCollector(bookie, self.store, ledger_path, ROOT, 1.0)
            await collector.run_round()
            await collector.run_round()


def _failed(reason: str) -> None:
    raise AssertionError(reason)


@asynccontextmanager
async def standalone_here(directory: Path, *settings: str) -> AsyncIterator[StandaloneHere]:
    conf = CONF / "standalone.conf"
    configuration = load_configuration([(conf.name, conf.read_text())], [*SETTINGS, *settings])
    clock, disk = RealClock(), RealDisk()
    store = await EmbeddedStore.open(str(directory / "metadata"), clock, _failed)
    standalone = Standalone(configuration, str(directory), disk, clock, RealRng(), store)
    await standalone.start()
    web = bound_web_ports(standalone.server_settings, standalone.tls_settings)
    await standalone.serve(web.number)
    await web.serve(standalone.service, store, standalone.security, standalone.tls, standalone.coordinators)
    port = int(standalone.service.lookup.advertised.broker_url.rsplit(":", 1)[1])
    assert web.number is not None
    try:
        yield StandaloneHere(standalone, store, port, web.number)
    finally:
        web.close()
        await standalone.stop()
        await store.close()
        disk.close()
