"""Logs in the topics of a namespace that brokers write and read like clients do, at any broker.

A log that is served here is the loaded topic, a log elsewhere a connection to its broker. Owns no log.
"""

from collections.abc import Awaitable, Callable

from ...errors import BrokerError, ServerError
from ...topic.contract import Topic
from ..catalogue.catalogue import Catalogue
from ..lookup import Lookup
from ..topic_name import TopicName
from .event_log import COMPACTION_CURSOR, EventLog, ServedEventLog
from .event_log_elsewhere import EventLogElsewhere

LoadTopic = Callable[[TopicName, bool], Awaitable[Topic]]
"""Loads a system topic that is served here. The flag: the topic may be created. BrokerError."""


class SystemLogs:
    """Opener of such logs on one broker. `new_name` makes names of producers."""

    def __init__(self, catalogue: Catalogue, lookup: Lookup, load: LoadTopic, new_name: Callable[[], str]) -> None:
        self._catalogue, self._lookup, self._load, self._new_name = catalogue, lookup, load, new_name

    async def open(self, topic: TopicName, is_made: bool) -> EventLog | None:
        """Returns the log, created if `is_made`; None when the topic is missing and not to be created. BrokerError."""
        if not is_made and not await self._catalogue.topic_exists(topic):
            return None
        found = await self._lookup.find(topic)
        if found.address != self._lookup.advertised:
            return EventLogElsewhere(str(topic), found, self._lookup.neighbours, self._new_name)
        try:
            return ServedEventLog(await self._load(topic, is_made), self._new_name)
        except BrokerError as refusal:
            if is_made or refusal.code is not ServerError.TOPIC_NOT_FOUND:
                raise
            return None  # deleted since


async def add_compaction_cursor(name: TopicName, topic: Topic) -> None:
    """Creates the cursor that keeps uncompacted messages of a system log from retention, also without a reader here."""
    if name.is_written_by_brokers:
        await topic.create_subscription(COMPACTION_CURSOR, from_earliest=True, properties={})
