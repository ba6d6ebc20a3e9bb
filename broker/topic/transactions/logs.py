"""LogsOfItsOwn: the managed ledgers beside a topic's, of each subscription's pending acknowledgements.

Owns their names, which are Apache's (MLPendingAckStore) and end so that they are not listed as topics.
"""

from managed_ledger.contract import ManagedLedger, ManagedLedgers
from metadata.paths import encode_name

_SUFFIX = "__transaction_pending_ack"


class LogsOfItsOwn:
    """Logs beside one topic, by the name of the topic's own managed ledger."""

    def __init__(self, logs: ManagedLedgers, topic_log: str) -> None:
        self._logs = logs
        self._topic_log = topic_log

    async def pending_acks(self, subscription: str, create: bool) -> ManagedLedger | None:
        """Opened; when it is missing made, or None. ManagedLedgerError."""
        if not create and not await self.exists(subscription):
            return None
        return await self._logs.open(self._name(subscription))

    async def exists(self, subscription: str) -> bool:
        """ManagedLedgerError."""
        return await self._logs.exists(self._name(subscription))

    def _name(self, subscription: str) -> str:
        return f"{self._topic_log}-{encode_name(subscription)}{_SUFFIX}"
