"""A broker's connections with authentication on, over transports that only remember; grants as a test wants them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker.connection.listener import Listener
from broker.connection.settings import ConnectionSettings
from broker.security.security import Security
from broker.security.settings import SecuritySettings
from broker.service.broker_service import BrokerService
from broker.service.settings import BrokerSettings
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.connection.peer import ADVERTISED, Peer
from tests.broker.fake_topics import FakeTopics
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from .token_maker import SECRET, in_setting, token

BEGINNING = 1_000_000.0
"""Wall-clock time, in seconds, when the loop's time is 0."""


def settings(**more: Any) -> SecuritySettings:
    """Tokens, and authorization with the super-user `admin` and the proxy `proxy`."""
    given = {
        "authentication_enabled": True,
        "authentication_providers": ("org.apache.pulsar.broker.authentication.AuthenticationProviderToken",),
        "token_secret_key": in_setting(SECRET),
        "authorization_enabled": True,
        "super_user_roles": ("admin",),
        "proxy_roles": ("proxy",),
    }
    return SecuritySettings(**{**given, **more})


class Secured:
    """One server, its metadata, and those who connect to it."""

    def __init__(self, listener: Listener, topics: FakeTopics, store: MemoryStore) -> None:
        self.listener, self.topics, self.store = listener, topics, store

    def peer(self) -> Peer:
        """One that has not said anything."""
        return Peer(self.listener, self.topics)

    async def peer_of(self, role: str, **fields: Any) -> Peer:
        peer = self.peer()
        found = await peer.ask(connect(token(role), **fields))
        assert found.type == BaseCommand.CONNECTED, found
        return peer

    async def peer_of_until(self, seconds: float, role: str = "admin", **fields: Any) -> Peer:
        """With a token that expires after so many seconds of the loop."""
        peer = self.peer()
        found = await peer.ask(connect(token(role, exp=BEGINNING + seconds), **fields))
        assert found.type == BaseCommand.CONNECTED, found
        return peer

    async def grant(self, namespace: str = "public/default", **auth: Any) -> None:
        """`namespace_auth`, `destination_auth`, `subscription_auth_roles`; `mode` is subscription_auth_mode."""
        path = f"/admin/policies/{namespace}"
        found = await self.store.get(path)
        document = {} if found is None else json.loads(found.value)
        document["subscription_auth_mode"] = auth.pop("mode", "None")
        document["auth_policies"] = auth
        await self.store.put(path, json.dumps(document).encode())

    async def admins(self, tenant: str, *roles: str) -> None:
        await self.store.put(f"/admin/policies/{tenant}", json.dumps({"adminRoles": roles, "allowedClusters": []}).encode())


def connect(credentials: str | None, method: str = "token", *, refreshes: bool = True, **fields: Any) -> BaseCommand:
    flags = api.FeatureFlags(supports_auth_refresh=refreshes)
    given = {"auth_method_name": method, "auth_data": (credentials or "").encode(), **fields}
    asked = api.CommandConnect(client_version="test", protocol_version=21, feature_flags=flags, **given)
    return BaseCommand(type=BaseCommand.CONNECT, connect=asked)


def auth_response(credentials: str, method: str = "token") -> BaseCommand:
    data = api.AuthData(auth_method_name=method, auth_data=credentials.encode())
    told = api.CommandAuthResponse(client_version="test", protocol_version=21, response=data)
    return BaseCommand(type=BaseCommand.AUTH_RESPONSE, auth_response=told)


@asynccontextmanager
async def secured(**more: Any) -> AsyncIterator[Secured]:
    """On virtual time, by which tokens expire too."""
    loop, clock = asyncio.get_running_loop(), RealClock()
    store = MemoryStore(clock)
    topics = FakeTopics(store)
    security = Security(settings(**more), store, {}, lambda: BEGINNING + loop.time())
    service = BrokerService(BrokerSettings(), store, clock, topics, FakeLedgerStore(FakeLedgers()))
    await service.bootstrap_standalone(ADVERTISED)
    await service.start(ADVERTISED)
    listener = Listener(service, ConnectionSettings(), security)
    try:
        yield Secured(listener, topics, store)
    finally:
        for connection in listener.server_port.connections:
            connection.close()
        await listener.close()
        await service.close()
        security.close()
