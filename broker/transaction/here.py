"""ParticipantsHere: the topics that this broker serves, as participants in transactions.

Owns nothing. A topic or a subscription that was deleted has nothing to decide any more (ServerCnx.handleEndTxnOnPartition).
"""

from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from ..service.catalogue.catalogue import Catalogue
from ..service.errors import NamespaceNotFound
from ..service.lifecycle.topic_lifecycle import TopicLifecycle
from ..service.topic_name import TopicName
from ..topic.contract import Topic


class ParticipantsHere:
    """A `broker.transaction.contract.Participants`."""

    def __init__(self, catalogue: Catalogue, lifecycle: TopicLifecycle) -> None:
        self._catalogue, self._lifecycle = catalogue, lifecycle

    async def end_on_partition(self, topic: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        found = await self._topic(topic)
        if found is not None:
            await found.end_transaction(txn_id, action, low_water_mark)

    async def end_on_subscription(
        self, topic: str, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int
    ) -> None:
        found = await self._topic(topic)
        if found is not None:
            await found.end_acknowledgements(subscription, txn_id, action, low_water_mark)

    async def _topic(self, name: str) -> Topic | None:
        """Loaded; None when there is none, nor can be."""
        topic = TopicName.parse(name)
        if topic.is_of_transactions:
            return None
        try:
            if not await self._catalogue.topic_exists(topic):
                return None
            return await self._lifecycle.topic(topic, may_create=False)
        except NamespaceNotFound:
            return None
        except BrokerError as refusal:
            if refusal.code is ServerError.TOPIC_NOT_FOUND:
                return None
            raise
