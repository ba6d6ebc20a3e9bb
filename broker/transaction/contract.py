"""Requests of a transaction coordinator to its participants: topics with their buffers, subscriptions with pending acks.

The same two questions that END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION ask on the wire. The broker that serves the topic
answers them; the coordinator calls this for topics of the same broker, and sends the command to other brokers.
"""

from typing import Protocol

from wire.transactions import TxnAction, TxnId


class Participants(Protocol):
    """Participants on the topics that this broker serves. Both may be asked again for finished work: they succeed then.

    `low_water_mark`: the sequence number (`TxnId.least`) up to which every transaction of this coordinator (`TxnId.most`)
    has ended, so that those that the participant still has open can be aborted; -1: unknown.
    """

    async def end_on_partition(self, topic: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        """Commits or aborts durably the transaction's messages there. A deleted topic counts as done. BrokerError:
        TRANSACTION_CONFLICT when it has ended the other way there, which stays so; SERVICE_NOT_READY where the topic is not
        served here, or any other error: the coordinator tries again."""

    async def end_on_subscription(
        self, topic: str, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int
    ) -> None:
        """Commits or aborts durably the transaction's acknowledgements there, like `end_on_partition`. A deleted
        subscription counts as done.
        """
