"""The refusals of the broker service that somebody above tells apart (the admin API: 404, 409, 412)."""

from ..errors import BrokerError, ServerError


class NamespaceNotFound(BrokerError):
    """The namespace has no policies. Apache says so with a code that makes clients retry for 30 s; this one ends it at once."""

    def __init__(self, namespace: str) -> None:
        super().__init__(ServerError.TOPIC_NOT_FOUND, f"Namespace not found: {namespace}")


class TopicNotFound(BrokerError):
    """The topic is not there and is not made by asking for it."""

    def __init__(self, topic: str) -> None:
        super().__init__(ServerError.TOPIC_NOT_FOUND, f"Topic not found: {topic}")


class TopicConflict(BrokerError):
    """There is a topic or a partitioned topic of that name already."""

    def __init__(self, topic: str) -> None:
        super().__init__(ServerError.NOT_ALLOWED, f"This topic already exists: {topic}")


class BadPartitionCount(BrokerError):
    """A number of partitions that cannot be."""

    def __init__(self, message: str) -> None:
        super().__init__(ServerError.NOT_ALLOWED, message)
