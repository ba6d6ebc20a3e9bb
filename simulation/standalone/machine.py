"""ServerMachine: a host that runs the real standalone (`cli.standalone`) on simulated ports, again and again on one disk.

Owns what outlives the process: disk, metadata tree, clock. The metadata are durable as soon as they are written; the answer
comes later, so a crash finds writes that no caller was told of.
"""

import asyncio
import random
from collections.abc import Mapping

from broker.service.topic_name import TopicName
from cli.configuration.loading import CONF, load_configuration
from cli.standalone.server import Standalone
from metadata.memory import MemoryStore, SharedTree
from metadata.store import MetadataStore
from metadata.tree import Tree
from simulation.clients.client import PORT, SERVER
from simulation.disks.disk import SimDisk
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.rng import stream

DATA = "/data"
STANDALONE_CONF = CONF / "standalone.conf"
START_SECONDS_MAX = 10.0
STOP_SECONDS_MAX = 20.0


class ServerMachine:
    """One host. `start`, `kill`, `cut_power` and `stop` may come in any order."""

    def __init__(self, loop: SimLoop, network: SimNetwork, seed: int, settings: Mapping[str, str]) -> None:
        self.disk = self._make_disk(loop, stream(seed, "disk"))
        self.process = SimProcess(loop, network, SERVER, self.disk, self._main)
        self.tree = Tree()
        self.standalone: Standalone | None = None
        self.lives = 0
        self._ready = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self.clock = SimClock(loop)
        self._seed = seed
        self._rng = stream(seed, "metadata")
        fixed = {"advertisedAddress": SERVER, "brokerServicePort": str(PORT), "bindAddress": "0.0.0.0"}
        overrides = [f"{key}={value}" for key, value in {**settings, **fixed}.items()]
        self._configuration = load_configuration([(STANDALONE_CONF.name, STANDALONE_CONF.read_text())], overrides)

    async def start(self) -> None:
        """Starts the server, and waits until it serves."""
        self._ready, self._stop_asked = asyncio.Event(), asyncio.Event()
        self.process.start()
        async with asyncio.timeout(START_SECONDS_MAX):
            await self._ready.wait()

    async def stop(self) -> None:
        """Stops like SIGTERM: until the process has ended by itself."""
        self._stop_asked.set()
        async with asyncio.timeout(STOP_SECONDS_MAX):
            await self.process.ended.wait()

    def unload(self, topic: str) -> "asyncio.Task[None] | None":
        """Unloads a loaded topic, like the admin's command. None while the server is not serving."""
        if self.standalone is None or not self.process.alive or not self._ready.is_set():
            return None
        return self.process.spawn(_unload(self.standalone, TopicName.parse(topic)))

    async def _main(self) -> None:
        self.lives += 1
        store = await self._open_store()
        rng = stream(self._seed, f"server {self.lives}")
        self.standalone = Standalone(self._configuration, DATA, self.disk, self.clock, rng, store)
        await self.standalone.start()
        await self.standalone.serve(8080)
        self._ready.set()
        await self._stop_asked.wait()
        await self.standalone.stop()
        await store.close()

    def _make_disk(self, loop: SimLoop, rng: random.Random) -> SimDisk:
        return SimDisk(loop, rng)

    async def _open_store(self) -> MetadataStore:
        shared = SharedTree()  # its watches die with the process, its tree does not
        shared.tree = self.tree
        return MemoryStore(self.clock, shared, answer_delay=self._answer_delay)

    def _answer_delay(self) -> float:
        return self._rng.expovariate(1 / 0.001)


async def _unload(standalone: Standalone, topic: TopicName) -> None:
    """Unloads the topic if it is loaded: after a restart it may not be (`broker.admin.routes.topics.topics`)."""
    if standalone.service.catalogue.loaded_topic(topic) is not None:
        await standalone.service.lifecycle.unload_topic(topic)
