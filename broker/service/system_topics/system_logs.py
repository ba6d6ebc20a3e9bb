"""SystemLogs: the topics of a namespace that brokers write and read like clients do, wherever each is served.

Owns nothing: here it is the loaded topic, elsewhere a connection to whoever has it.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...errors import BrokerError, ServerError
from ...topic.contract import Topic
from ..policies.topic_policies_events import change_events_of
from ..topic_name import NamespaceName, TopicName
from .event_log import COMPACTION_CURSOR, EventLog, ServedEventLog
from .event_log_elsewhere import EventLogElsewhere

if TYPE_CHECKING:
    from ..broker_service import BrokerService

NO_TOPIC_POLICIES = "Topic level policies is disabled, to enable the topic level policy and retry."
"""Apache's words."""


class SystemLogs:
    """Of one broker. `load`: a topic that is served here, made when it is missing."""

    def __init__(self, service: "BrokerService", load: Callable[[TopicName, bool], Awaitable[Topic]]) -> None:
        self._service, self._load = service, load

    async def open(self, topic: TopicName, is_made: bool) -> EventLog | None:
        """None when it is not there and not to be made. BrokerError."""
        service = self._service
        if not is_made and not await service.topic_exists(topic):
            return None
        found = await service.lookup(topic)
        if found.address != service.advertised:
            return EventLogElsewhere(str(topic), found, service.neighbours, service.new_producer_name)
        try:
            return ServedEventLog(await self._load(topic, is_made), service.new_producer_name)
        except BrokerError as refusal:
            if is_made or refusal.code is not ServerError.TOPIC_NOT_FOUND:
                raise
            return None  # deleted since

    async def change_events(self, namespace: NamespaceName, is_made: bool) -> EventLog | None:
        """Where the policies of the namespace's topics are written. Where topics have none it is as if it were not there."""
        if not self._service.settings.has_topic_policies:
            if is_made:
                raise BrokerError(ServerError.NOT_ALLOWED, NO_TOPIC_POLICIES)
            return None
        return await self.open(change_events_of(namespace), is_made)


async def keep_what_is_not_compacted(name: TopicName, topic: Topic) -> None:
    """Of such a log, also where nobody here reads it: without a cursor retention would let go of what brokers rely on."""
    if name.is_written_by_brokers:
        await topic.create_subscription(COMPACTION_CURSOR, from_earliest=True, properties={})
