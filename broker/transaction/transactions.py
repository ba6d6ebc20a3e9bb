"""Transactions of a broker, put together: its coordinators and their way to everybody who takes part.

Owns the order of their end. `None` of them: transactionCoordinatorEnabled is false.
"""

from managed_ledger.contract import ManagedLedgers
from ports.clock import Clock

from ..service.broker_service import BrokerService
from .contract import Participants
from .coordinators import Coordinators
from .participants import ParticipantsAnywhere
from .settings import TransactionSettings


class BrokerTransactions:
    """`start` once the service has started, `close` before it is closed."""

    def __init__(
        self, settings: TransactionSettings, ledgers: ManagedLedgers, service: BrokerService, here: Participants, clock: Clock
    ) -> None:
        self._participants = ParticipantsAnywhere(service, here)
        self.coordinators = Coordinators(settings, ledgers, service, self._participants, clock)

    async def start(self) -> None:
        await self.coordinators.start()

    async def close(self) -> None:
        """Closing twice is fine."""
        await self.coordinators.close()
        await self._participants.close()
