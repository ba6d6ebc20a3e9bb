"""Choosing: the broker to ask for a bundle without an owner, for lookups."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Protocol

from ...ownership.bundles import Bundle, Bundles, place
from ..board import LoadBoard, Report
from ..loads import BundleHistory
from .least_loaded import least_loaded
from .rules_driver import PlacementPolicies

ASKED_SECONDS = 30.0
"""Time after which a broker that was asked to take a bundle has reported it, or was not asked by the client after all."""


class Chooser(Protocol):
    """Choice of a broker for a bundle, as lookups need it."""

    async def choose(self, cut: Bundles, bundle: Bundle, brokers: Collection[str]) -> str | None:
        """Returns one of the brokers; None when none of them may have the bundle. MetadataError."""

    async def wish(self, bundle: Bundle, broker: str) -> None:
        """Makes this broker the choice for the bundle. MetadataError."""

    async def wished(self, bundle: Bundle) -> str | None:
        """The broker of the last wish, if that still counts. MetadataError."""


class ByHash:
    """Choice of the wished broker; without a wish each gets as many bundles of a namespace as any other, or one more."""

    def __init__(self, board: LoadBoard) -> None:
        self._board = board

    async def choose(self, cut: Bundles, bundle: Bundle, brokers: Collection[str]) -> str | None:
        wished = await self._board.wished(bundle)
        return wished if wished in brokers else place(cut, bundle, brokers)

    async def wish(self, bundle: Bundle, broker: str) -> None:
        await self._board.wish(bundle, broker)

    async def wished(self, bundle: Bundle) -> str | None:
        return await self._board.wished(bundle)


class ByLoad:
    """Choice of the wished broker; without a wish the least loaded broker that `rules` allow.

    Every broker decides by itself, from the same reports: where two decide differently, the first to take the bundle has it.
    Owns the bundles that it sent to each broker in the last ASKED_SECONDS: the broker may not have reported them yet.
    """

    def __init__(self, board: LoadBoard, policies: PlacementPolicies, overloaded_share: float) -> None:
        self._board, self._policies, self._overloaded_share = board, policies, overloaded_share
        self._asked: dict[str, dict[str, float]] = {}
        self._known: dict[str, BundleHistory] = {}
        """Histories that former owners kept of the bundles in `_asked`."""
        self._loop = asyncio.get_running_loop()

    async def choose(self, cut: Bundles, bundle: Bundle, brokers: Collection[str]) -> str | None:
        wished = await self._board.wished(bundle)
        if wished in brokers:
            return wished
        reports = await self._board.reports(brokers)
        self._forget()
        homes = await self._homes(bundle, brokers, reports)
        loads = {broker: report.load for broker, report in reports.items()}
        reported = {name: history for report in reports.values() for name, history in report.histories.items()}
        histories = self._known | reported
        chosen = least_loaded(cut, bundle, homes, loads, histories, self._asked, self._overloaded_share)
        if chosen is not None:
            self._asked.setdefault(chosen, {})[str(bundle)] = self._loop.time()
            history = await self._board.history(str(bundle))
            if history is not None:
                self._known[str(bundle)] = history
        return chosen

    async def _homes(self, bundle: Bundle, brokers: Collection[str], reports: Mapping[str, Report]) -> list[str]:
        hosted = {broker: {*report.load.bundles} for broker, report in reports.items()}
        for broker, asked in self._asked.items():
            hosted[broker] = {*hosted.get(broker, ()), *asked}
        rules = await self._policies.rules(str(bundle), hosted)
        return rules.homes(str(bundle), sorted(brokers), hosted)

    async def wish(self, bundle: Bundle, broker: str) -> None:
        await self._board.wish(bundle, broker)

    async def wished(self, bundle: Bundle) -> str | None:
        return await self._board.wished(bundle)

    def _forget(self) -> None:
        limit = self._loop.time() - ASKED_SECONDS
        kept = {broker: {name: at for name, at in asked.items() if at > limit} for broker, asked in self._asked.items()}
        self._asked = {broker: asked for broker, asked in kept.items() if asked}
        names = {name for asked in self._asked.values() for name in asked}
        self._known = {name: history for name, history in self._known.items() if name in names}
