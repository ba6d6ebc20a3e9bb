"""LoadLeader: one broker of the cluster is elected to choose the bundles that leave overloaded brokers (Apache: LeaderBroker).

Owns the place in the election and, while it has won, averaged usages and the time of each bundle's last move. The leader has no
other task; with two for a moment, or none, bundles are moved once too often, or not.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from metadata.claim import Hold
from metadata.claim_driver import Claim
from metadata.sessions import Sessions
from metadata.store import MetadataError, MetadataStore
from ports.logs import line

from ..addresses import Advertised
from ..catalogue.namespaces import to_json
from ..neighbours.members import Members
from .board import LoadBoard
from .loads import BrokerLoad
from .placement.rules_driver import PlacementPolicies
from .settings import TRANSFER_SHEDDER, LoadSettings
from .shedding import Homes, Move, UsageHistory, by_threshold, by_transfer

LEADER = "/loadbalance/leader"
log = logging.getLogger(__name__)

CarryOut = Callable[[Move], Awaitable[None]]


class MoveFailed(Exception):
    """A bundle stays where it is; says why."""


@dataclass(slots=True)
class Moves:
    """Since it runs: bundles moved, or not as it turned out; brokers that gave some up, once for each round."""

    bundles: int = 0
    brokers: int = 0
    failed: int = 0


def leader_claim(store: MetadataStore, sessions: Sessions, own_id: str, advertised: Advertised) -> Claim:
    """A broker's claim to be the leader; not wanted yet."""
    value = to_json({"brokerId": own_id, "serviceUrl": advertised.http_url or advertised.http_url_tls})
    return Claim(store, sessions, LEADER, value, lambda _hold, _holder: None)


class LoadLeader:
    """`run` until cancelled, then `close`, also of the claim. `carry_out` has the source give the bundle up; MoveFailed."""

    def __init__(
        self,
        claim: Claim,
        members: Members,
        board: LoadBoard,
        policies: PlacementPolicies,
        settings: LoadSettings,
        carry_out: CarryOut,
    ) -> None:
        self._claim = claim
        self._members, self._board, self._policies = members, board, policies
        self._settings, self._carry_out = settings, carry_out
        self._usages: dict[str, UsageHistory] = {}
        self._moved_at: dict[str, float] = {}
        self.moves = Moves()
        self._loop = asyncio.get_running_loop()

    @property
    def is_leader(self) -> bool:
        return self._claim.hold is Hold.HELD

    def leader(self) -> Mapping[str, str]:
        """Apache's LeaderBroker, as far as known; empty when there is none."""
        try:
            found = json.loads(self._claim.holder or b"{}")
        except ValueError:
            return {}
        return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else {}

    async def run(self) -> None:
        """Runs until cancelled; a failure of the metadata is waited out."""
        self._claim.want()
        while True:
            await asyncio.sleep(60 * self._settings.load_balancer_shedding_interval_minutes)
            if not self.is_leader:
                self._usages.clear()
            elif self._settings.load_balancer_shedding_enabled:
                try:
                    await self.shed()
                except MetadataError as error:
                    log.warning(line("bundles cannot be moved", reason=error))

    async def close(self) -> None:
        """Another is elected at once."""
        await self._claim.close()

    async def shed(self) -> list[Move]:
        """Performs one round, and returns the moves. MetadataError."""
        reports = await self._board.reports(await self._members.ids())
        loads = {broker: report.load for broker, report in reports.items()}
        self._average(loads)
        homes = await self._homes(loads)
        moved = [move for move in self._decide(loads, homes) if await self._move(move)]
        self.moves.brokers += len({move.source for move in moved})
        return moved

    @property
    def usages(self) -> list[float]:
        """Averaged, of all brokers, as shares of their limits; empty where it has not looked."""
        return [history.usage for history in self._usages.values()]

    async def _homes(self, loads: Mapping[str, BrokerLoad]) -> Homes:
        """MetadataError."""
        hosted = {broker: load.bundles.keys() for broker, load in loads.items()}
        rules = {name: await self._policies.rules(name, hosted) for name in sorted(chain.from_iterable(hosted.values()))}
        return lambda bundle: rules[bundle].homes(bundle, sorted(loads), hosted)

    def _average(self, loads: Mapping[str, BrokerLoad]) -> None:
        weight = self._settings.load_balancer_history_resource_percentage
        self._usages = {
            broker: self._usages[broker].after(load.usage.greatest, weight)
            if broker in self._usages
            else UsageHistory(load.usage.greatest)
            for broker, load in loads.items()
        }

    def _decide(self, loads: Mapping[str, BrokerLoad], homes: Homes) -> list[Move]:
        settings, now = self._settings, self._loop.time()
        grace = 60 * settings.load_balancer_shedding_grace_period_minutes
        self._moved_at = {name: at for name, at in self._moved_at.items() if now - at < grace}
        usages = {broker: history.usage for broker, history in self._usages.items()}
        if settings.load_balancer_load_shedding_strategy == TRANSFER_SHEDDER:
            return by_transfer(loads, usages, self._moved_at, settings.transfer_rule, homes)
        return by_threshold(loads, usages, self._moved_at, settings.threshold_rule, homes)

    async def _move(self, move: Move) -> bool:
        log.info(line("bundle is moved", bundle=move.bundle, source=move.source, destination=move.destination or "by load"))
        try:
            await self._carry_out(move)
        except MoveFailed as error:
            log.warning(line("bundle is not moved", bundle=move.bundle, source=move.source, reason=error))
            self.moves.failed += 1
            return False
        self.moves.bundles += 1
        self._moved_at[move.bundle] = self._loop.time()
        return True
