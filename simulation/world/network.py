"""SimNetwork: hosts, listening ports, connections, and what can go wrong between them. Owns delay; not streams.

Faults: a delay drawn for every packet (so connections overtake each other), slow links, partitions in one or both directions
(packets wait until healed, as TCP repeats them), resets, refused and timed-out connects, a host without power (its connections
are half-open: the peer learns of it when it sends and the host is up again).
"""

import asyncio
import contextvars
import errno
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulation.world.loop import OWNER, Owner, SimLoop
from simulation.world.transport import Mark, SimSocket, SimTransport

CONNECT_SECONDS_MAX = 10.0
CONNECT_RETRY_SECONDS = 0.5
OUTSIDE = "outside"
"""The host of whatever runs in no process."""
LOCAL_NAMES = frozenset({"", "localhost", "127.0.0.1", "0.0.0.0", "::", "::1"})


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening port and who accepts."""

    name: tuple[str, int]
    factory: Callable[[], asyncio.BaseProtocol]
    context: contextvars.Context
    owner: Owner | None


class SimServer(asyncio.AbstractServer):
    """Server that `create_server` returns."""

    def __init__(self, network: "SimNetwork", listener: Listener) -> None:
        self._network, self._listener = network, listener

    @property
    def sockets(self) -> tuple[SimSocket, ...]:
        return (SimSocket(self._listener.name, None),) if self.is_serving() else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self._network.listeners.get(self._listener.name) is self._listener

    async def start_serving(self) -> None:
        """Does nothing: the server serves from the start."""

    async def serve_forever(self) -> None:
        await self._network.loop.create_future()

    def close(self) -> None:
        if self.is_serving():
            del self._network.listeners[self._listener.name]

    async def wait_closed(self) -> None:
        """Returns at once, like uvloop: connections stay open."""


class SimNetwork:
    """One network for all hosts of a run."""

    def __init__(self, loop: SimLoop, rng: random.Random) -> None:
        self.loop, self.rng = loop, rng
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.transports: dict[SimTransport, None] = {}
        self._base_delays: dict[tuple[str, str], float] = {}
        self._slowness: dict[tuple[str, str], float] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._held: list[SimTransport] = []
        self._down: dict[str, None] = {}
        self._refusing: dict[SimTransport, None] = {}
        self._port = 40_000
        loop.network = self

    # The Wire of SimTransport

    def delay(self, source: str, target: str) -> float:
        """Seconds until a packet that leaves now arrives."""
        base = self._base_delays.get((source, target))
        if base is None:
            base = self._base_delays[source, target] = self.rng.uniform(0.000_02, 0.001)
        spike = self.rng.uniform(0.0, 0.02) if self.rng.random() < 0.01 else 0.0
        return base * (1.0 + self.rng.random()) * self._slowness.get((source, target), 1.0) + spike

    def hold(self, sender: SimTransport) -> bool:
        if (sender.name[0], sender.peer_name[0]) not in self._cuts:
            return False
        self._held.append(sender)
        return True

    def is_up(self, host: str) -> bool:
        return host not in self._down

    def wait_for_power(self, end: SimTransport) -> bool:
        if self.is_up(end.name[0]):
            return False
        self._refusing[end] = None
        return True

    def forget(self, transport: SimTransport) -> None:
        self.transports.pop(transport, None)

    # Faults

    def cut(self, source: str, target: str) -> None:
        """Drops everything in this direction from now on."""
        self._cuts[source, target] = None

    def set_distance(self, source: str, target: str, seconds: float) -> None:
        """Sets the least time of a packet in this direction; `heal` leaves it."""
        self._base_delays[source, target] = seconds

    def slow(self, source: str, target: str, factor: float) -> None:
        self._slowness[source, target] = factor

    def heal(self) -> None:
        """No cuts and no slowness any more; what waited arrives now."""
        self._cuts.clear()
        self._slowness.clear()
        self._resume()

    def mend(self, source: str, target: str) -> None:
        """This direction is not cut any more."""
        self._cuts.pop((source, target), None)
        self._resume()

    def _resume(self) -> None:
        held, self._held = self._held, []
        for sender in held:
            sender.resume_flight()

    def reset(self, transport: SimTransport, *, at_once: bool = False) -> None:
        """Both ends learn of it, each in its own time; `at_once`: the peer now, so that what is under way to it is lost."""
        if at_once:
            self.loop.hardware_later(0.0, transport.peer.receive, Mark.RST)
        for end in (transport,) if at_once else (transport, transport.peer):
            self.loop.hardware_later(self.delay(end.peer_name[0], end.name[0]), end.receive, Mark.RST)

    def drop_process(self, owner: Owner, *, power_cut: bool) -> None:
        """Everything that `owner` had open is gone."""
        for name in [name for name, listener in self.listeners.items() if listener.owner is owner]:
            del self.listeners[name]
        for transport in [end for end in self.transports if end.owner is owner]:
            if power_cut:
                transport.lose_flight(self.rng.randrange(4))
                transport.vanish(None)
            else:
                transport.vanish(self.rng.choice((Mark.FIN, Mark.RST)))

    def set_power(self, host: str, *, on: bool) -> None:
        if on:
            self._down.pop(host, None)
            for end in [end for end in self._refusing if end.name[0] == host]:
                del self._refusing[end]
                end.refuse()
        else:
            self._down[host] = None

    # The loop's create_server and create_connection

    def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: Any, port: int, options: dict[str, Any]) -> SimServer:
        self._refuse(options)
        owner = OWNER.get()
        name = (self._host_of(owner), port or self._next_port())
        if name in self.listeners:
            raise OSError(errno.EADDRINUSE, f"address already in use: {name[0]}:{name[1]}")
        self.listeners[name] = Listener(name, factory, contextvars.copy_context(), owner)
        return SimServer(self, self.listeners[name])

    async def connect(
        self, factory: Callable[[], Any], host: str, port: int, options: dict[str, Any]
    ) -> tuple[asyncio.Transport, Any]:
        self._refuse(options)
        source = self._host_of(OWNER.get())
        target = source if host in LOCAL_NAMES else host
        listener = await self._reach(source, target, port)
        client = self._pair((source, self._next_port()), listener)
        await asyncio.sleep(self.delay(target, source))
        if client.is_gone:
            raise ConnectionResetError(errno.ECONNRESET, f"connection to {host}:{port} was reset")
        protocol = factory()
        client.open(protocol)
        return client, protocol

    async def _reach(self, source: str, target: str, port: int) -> Listener:
        deadline = self.loop.time() + CONNECT_SECONDS_MAX
        while True:
            await asyncio.sleep(self.delay(source, target))
            is_cut = (source, target) in self._cuts or (target, source) in self._cuts
            if not is_cut and self.is_up(target):
                break
            if self.loop.time() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, f"connect to {target}:{port} timed out")
            await asyncio.sleep(CONNECT_RETRY_SECONDS)
        listener = self.listeners.get((target, port))
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"connect to {target}:{port} refused")
        return listener

    def _pair(self, name: tuple[str, int], listener: Listener) -> SimTransport:
        window = self.rng.choice((16, 64, 256, 1024)) * 1024
        client = SimTransport(self.loop, self, name, listener.name, contextvars.copy_context(), window)
        context = listener.context.copy()
        server = SimTransport(self.loop, self, listener.name, name, context, window)
        client.peer, server.peer = server, client
        self.transports[client] = self.transports[server] = None
        self.loop.trace.record("net", f"{client.label} open")
        self.loop.call_soon(lambda: server.open(listener.factory()), context=context)
        return client

    def _refuse(self, options: dict[str, Any]) -> None:
        for key in ("ssl", "sock", "local_addr"):
            if options.get(key) is not None:
                raise NotImplementedError(f"the simulated network has no {key}")

    def _host_of(self, owner: Owner | None) -> str:
        return OUTSIDE if owner is None else owner.host

    def _next_port(self) -> int:
        self._port += 1
        return self._port
