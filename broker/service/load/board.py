"""LoadBoard: the reports of all brokers, in the metadata, and the wished next owners of bundles.

A report is LocalBrokerData's changing half and the histories of the broker's bundles. It is a node of its own beside the one
under /loadbalance/brokers, which must not change while the broker lives (`members`), and does not count without that one. An
Apache broker beside ours writes its load into that one, and no histories: the current load of its bundles replaces them. Owns a
cache of other brokers' reports, which watches empty.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from metadata.store import MetadataError, MetadataStore, NoNode, Notification
from ports.clock import Clock

from ..addresses import BROKERS
from ..catalogue.namespaces import to_json
from ..ownership.bundles import Bundle
from .loads import BrokerLoad, BundleHistory, decode_history, decode_load, encode_history, load_fields

REPORTS = "/loadbalance/load-reports"
DESTINATIONS = "/loadbalance/destinations"
BUNDLE_DATA = "/loadbalance/bundle-data"
"""Apache's BundleData, below it by bundle: the next owner's first values."""
HISTORIES = "bundleData"
WISH_MS = 60_000
"""Time for which a wish counts: the bundle is given up, and asked for again, within that time."""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of one broker."""

    load: BrokerLoad = field(default_factory=BrokerLoad)
    histories: Mapping[str, BundleHistory] = field(default_factory=dict)
    """Histories by name of the bundle."""
    is_apaches: bool = False
    """The report is from the node of a broker that is not one of ours."""


def encode_report(report: Report) -> bytes:
    histories = {name: json.loads(encode_history(history)) for name, history in report.histories.items()}
    return to_json(load_fields(report.load) | {HISTORIES: histories})


def decode_report(value: bytes) -> Report:
    """MetadataError."""
    load = decode_load(value)
    found = json.loads(value).get(HISTORIES) or {}
    if not isinstance(found, dict):
        raise MetadataError(f"unreadable load report: {HISTORIES} is no object")
    return Report(load, {name: decode_history(json.dumps(each).encode()) for name, each in found.items()})


def apaches_report(value: bytes) -> Report | None:
    """Returns the report in an Apache broker's LocalBrokerData; None when it was never updated, as ours are not.
    MetadataError."""
    load = decode_load(value)
    if not load.updated_ms:
        return None
    return Report(load, {name: BundleHistory().after(stats) for name, stats in load.bundles.items()}, is_apaches=True)


class LoadBoard:
    """Board of one metadata store; `close` last."""

    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._cached: dict[str, Report] = {}
        self._unwatch = [store.watch(path, self._changed) for path in (REPORTS, BROKERS)]

    async def reports(self, brokers: Collection[str]) -> dict[str, Report]:
        """Returns the reports of these brokers, as far as they have reported. MetadataError."""
        found = {broker: await self._report(broker) for broker in brokers}
        return {broker: report for broker, report in found.items() if report is not None}

    async def put(self, broker: str, report: Report) -> None:
        """MetadataError."""
        await self._store.put(f"{REPORTS}/{broker}", encode_report(report))

    async def remove(self, broker: str) -> None:
        """MetadataError; nothing when there is none."""
        await self._delete(f"{REPORTS}/{broker}")

    async def wish(self, bundle: Bundle, broker: str) -> None:
        """Names the broker that is to serve the bundle next. MetadataError."""
        await self._store.put(_destination(bundle), broker.encode())

    async def wished(self, bundle: Bundle) -> str | None:
        """MetadataError."""
        found = await self._store.get(_destination(bundle))
        if found is None:
            return None
        if self._clock.now_ms() - found.stat.modified_ms > WISH_MS:
            await self._delete(_destination(bundle))
            return None
        return found.value.decode(errors="replace")

    async def keep_history(self, bundle: str, history: BundleHistory) -> None:
        """Stores the history of a bundle for its next owner. MetadataError."""
        await self._store.put(f"{BUNDLE_DATA}/{bundle}", encode_history(history))

    async def history(self, bundle: str) -> BundleHistory | None:
        """Returns the history that the previous owner stored, or an Apache broker. MetadataError."""
        found = await self._store.get(f"{BUNDLE_DATA}/{bundle}")
        return None if found is None else decode_history(found.value)

    def close(self) -> None:
        for end in self._unwatch:
            end()

    async def _report(self, broker: str) -> Report | None:
        cached = self._cached.get(broker)
        if cached is not None:
            return cached
        found = await self._store.get(f"{REPORTS}/{broker}")
        report = await self._apaches(broker) if found is None else decode_report(found.value)
        if report is not None:
            self._cached[broker] = report
        return report

    async def _apaches(self, broker: str) -> Report | None:
        found = await self._store.get(f"{BROKERS}/{broker}")
        return None if found is None else apaches_report(found.value)

    async def _delete(self, path: str) -> None:
        try:
            await self._store.delete(path)
        except NoNode:
            return

    def _changed(self, notification: Notification) -> None:
        self._cached.pop(notification.path.rpartition("/")[2], None)


def _destination(bundle: Bundle) -> str:
    return f"{DESTINATIONS}/{bundle}"
