"""Registered brokers: this one's node in /loadbalance/brokers, and the addresses of the others.

A node is named by the broker's id, `host:webport`, and holds Apache's LocalBrokerData, of which clients and brokers read the
URLs. It holds nothing that changes, so that a broker that was killed takes its own node again before its session ends.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from metadata.claim import Hold
from metadata.claim_driver import Claim
from metadata.sessions import Sessions
from metadata.store import Change, MetadataError, MetadataStore, NoNode, Notification

from ..addresses import BROKERS, Advertised, address_for
from ..catalogue.namespaces import to_json

CONTEST_SECONDS = 2.0
"""Time in which a broker that runs makes its node anew; one that was killed does not."""


MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""Apache's class that owns bundles as this broker does: by nodes. A leader of Apache's places bundles on those brokers alone
that name its own class (BrokerLoadManagerClassFilter)."""


class MemberConflict(Exception):
    """Another broker is registered under this one's id."""


def broker_data(advertised: Advertised, listeners: Mapping[str, Advertised], version: str) -> bytes:
    """LocalBrokerData of a broker of unknown load."""
    value: dict[str, Any] = {
        "webServiceUrl": advertised.http_url or None,
        "webServiceUrlTls": advertised.http_url_tls or None,
        "pulsarServiceUrl": advertised.broker_url or None,
        "pulsarServiceUrlTls": advertised.broker_url_tls or None,
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": False,
        **{resource: {"usage": 0.0, "limit": 0.0} for resource in _RESOURCES},
        **dict.fromkeys(_RATES, 0.0),
        **dict.fromkeys(_COUNTS, 0),
        "lastStats": {},
        "bundles": [],
        "lastBundleGains": [],
        "lastBundleLosses": [],
        "brokerVersionString": version,
        "protocols": {},
        "loadManagerClassName": MODULAR,
        "advertisedListeners": listener_data(listeners),
        "loadReportType": "LocalBrokerData",
    }
    return to_json(_without_nulls(value))


def ownership_data(advertised: Advertised, listeners: Mapping[str, Advertised]) -> bytes:
    """Apache's NamespaceEphemeralData, of the node that names the owner of a bundle."""
    value = {
        "nativeUrl": advertised.broker_url or None,
        "nativeUrlTls": advertised.broker_url_tls or None,
        "httpUrl": advertised.http_url or None,
        "httpUrlTls": advertised.http_url_tls or None,
        "disabled": False,
        "advertisedListeners": listener_data(listeners),
    }
    return to_json(_without_nulls(value))


def listener_data(listeners: Mapping[str, Advertised]) -> dict[str, Any]:
    """Apache's AdvertisedListener, by name."""
    return {
        name: _without_nulls({"brokerServiceUrl": each.broker_url or None, "brokerServiceUrlTls": each.broker_url_tls or None})
        for name, each in listeners.items()
    }


def _without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


_RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
_RATES = ("msgThroughputIn", "msgThroughputOut", "msgRateIn", "msgRateOut")
_COUNTS = ("lastUpdate", "numTopics", "numBundles", "numConsumers", "numProducers")


def parse_broker_data(value: bytes, listener: str) -> Advertised:
    """Returns the addresses in LocalBrokerData or NamespaceEphemeralData, ours and Apache's. MetadataError; BrokerError: no
    such listener."""
    try:
        fields = json.loads(value)
        found = Advertised(
            _url(fields, "pulsarServiceUrl", "nativeUrl"),
            _url(fields, "webServiceUrl", "httpUrl"),
            _url(fields, "pulsarServiceUrlTls", "nativeUrlTls"),
            _url(fields, "webServiceUrlTls", "httpUrlTls"),
        )
        listeners = {
            name: Advertised(
                _url(each, "brokerServiceUrl"), found.http_url, _url(each, "brokerServiceUrlTls"), found.http_url_tls
            )
            for name, each in (fields.get("advertisedListeners") or {}).items()
        }
    except (ValueError, AttributeError) as error:
        raise MetadataError(f"unreadable data of a broker: {error}") from error
    return address_for(listener, found, listeners)


def _url(fields: Mapping[str, Any], *names: str) -> str:
    return next((str(fields[name]) for name in names if fields.get(name)), "")


class Members:
    """The brokers of one metadata store, of which this is one. `contest` and `join` first, `leave` last."""

    def __init__(self, store: MetadataStore, sessions: Sessions, own_id: str, data: bytes) -> None:
        self._store, self._sessions = store, sessions
        self.own_id, self._data = own_id, data
        self._claim: Claim | None = None

    async def contest(self) -> None:
        """Before it joins: a node like ours was left by this broker when it was killed, or belongs to a process that runs with
        the same addresses, which makes it again as soon as it is gone. MemberConflict, MetadataError."""
        path, made = f"{BROKERS}/{self.own_id}", asyncio.Event()

        def on_notification(notification: Notification) -> None:
            if notification.path == path and notification.change is Change.CREATED:
                made.set()

        found = await self._store.get(path)
        if found is None or found.value != self._data:
            return
        unwatch = self._store.watch(path, on_notification)
        try:
            await self._store.delete(path, found.stat.version)
            async with asyncio.timeout(CONTEST_SECONDS):
                await made.wait()
        except (TimeoutError, NoNode):
            return
        finally:
            unwatch()
        raise MemberConflict(
            f"{path} is taken by another broker that runs with the same addresses: give this one its own advertisedAddress,"
            " or its own brokerServicePort and webServicePort"
        )

    async def join(self) -> None:
        """Be registered from now on, through sessions that end. MemberConflict."""
        path = f"{BROKERS}/{self.own_id}"
        self._claim = Claim(self._store, self._sessions, path, self._data, lambda _hold, _holder: None)
        self._claim.want()
        if await self._claim.until_decided() is Hold.BUSY:
            holder = self._claim.holder.decode(errors="replace")
            await self.leave()
            raise MemberConflict(f"{path} is taken by another broker ({holder[:200]}): set advertisedAddress or webServicePort")

    async def leave(self) -> None:
        """Closing twice is fine."""
        claim, self._claim = self._claim, None
        if claim is not None:
            await claim.close()

    async def ids(self) -> list[str]:
        """Returns the ids of all registered brokers, sorted. MetadataError."""
        return await self._store.children(BROKERS)

    async def data(self, member: str) -> bytes | None:
        """LocalBrokerData; None when it is not registered any more. MetadataError."""
        found = await self._store.get(f"{BROKERS}/{member}")
        return None if found is None else found.value
