"""Transactions of a broker, put together: its coordinators and their access to all participants.

Owns the order of their end. `None` of them: transactionCoordinatorEnabled is false.
"""

from managed_ledger.contract import ManagedLedgers
from ports.clock import Clock

from ..service.broker_service import BrokerService
from .coordinators import Coordinators
from .here import ParticipantsHere
from .participants import ParticipantsAnywhere
from .settings import TransactionSettings


class BrokerTransactions:
    """`start` once the service has started, `close` before it is closed."""

    def __init__(self, settings: TransactionSettings, ledgers: ManagedLedgers, service: BrokerService, clock: Clock) -> None:
        here = ParticipantsHere(service.catalogue, service.lifecycle)
        self._participants = ParticipantsAnywhere(service.lookup, here)
        self.coordinators = Coordinators(settings, ledgers, service.catalogue, service.lookup, self._participants, clock)
        self._lifecycle = service.lifecycle

    async def start(self) -> None:
        self._lifecycle.close_with(self.coordinators.close_covered)
        await self.coordinators.start()

    async def close(self) -> None:
        """Closing twice is fine."""
        await self.coordinators.close()
        await self._participants.close()
