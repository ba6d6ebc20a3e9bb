"""Requests of a transaction coordinator to its participants: topics with their buffers, subscriptions with pending acks.

The same two questions that END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION ask on the wire. Whoever serves the topic
answers them; the coordinator calls this where the topic is served by the same broker, and sends the command elsewhere.
"""

from typing import Protocol

from wire.transactions import TxnAction, TxnId


class Participants(Protocol):
    """Participants on the topics that this broker serves. Both may be asked again for what has been done: they succeed then.

    `low_water_mark`: the sequence number (`TxnId.least`) up to which every transaction of this coordinator (`TxnId.most`)
    has ended, so that whatever the participant still has open of those can be aborted; -1 says nothing.
    """

    async def end_on_partition(self, topic: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        """Commits or aborts durably what the transaction published there. A topic that was deleted: done. BrokerError:
        TRANSACTION_CONFLICT when it has ended the other way there, which stays so; SERVICE_NOT_READY where the topic is not
        served here, or anything else: it is tried again."""

    async def end_on_subscription(
        self, topic: str, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int
    ) -> None:
        """Commits or aborts durably what the transaction acknowledged there, like `end_on_partition`. A subscription that was
        deleted: done."""
