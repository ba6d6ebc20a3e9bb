"""Opening of `__change_events`, the system topic of each namespace that holds the policies of its topics."""

from ...errors import BrokerError, ServerError
from ..settings import BrokerSettings
from ..system_topics.event_log import EventLog
from ..system_topics.system_logs import SystemLogs
from ..topic_name import NamespaceName
from .topic_policies_events import change_events_of

NO_TOPIC_POLICIES = "Topic level policies is disabled, to enable the topic level policy and retry."
"""Apache's words."""


class ChangeEvents:
    """Opener of the log of each namespace. The log counts as missing where topics have no policies."""

    def __init__(self, settings: BrokerSettings, logs: SystemLogs) -> None:
        self._settings, self._logs = settings, logs

    async def open(self, namespace: NamespaceName, is_made: bool) -> EventLog | None:
        """Returns the log, created if `is_made`; None when it is missing and not to be created. BrokerError."""
        if self._settings.has_topic_policies:
            return await self._logs.open(change_events_of(namespace), is_made)
        if is_made:
            raise BrokerError(ServerError.NOT_ALLOWED, NO_TOPIC_POLICIES)
        return None
