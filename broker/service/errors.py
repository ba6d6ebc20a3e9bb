"""The refusals of the broker service that layers above distinguish (the admin API: 404, 409, 412)."""

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


class PartitionsChanged(BrokerError):
    """Partitioned topic that is being deleted or was changed meanwhile: clients try again (for the code: `BundleUnsettled`)."""

    def __init__(self, topic: str, what: str = "was changed at the same time: try again") -> None:
        super().__init__(ServerError.METADATA, f"The partitioned topic {topic} {what}")


class TopicElsewhere(BrokerError):
    """The topic's bundle is not owned by this broker: clients look it up again, REST requests are redirected to the owner."""

    def __init__(self, topic: str, broker: str) -> None:
        message = f"Namespace bundle for topic ({topic}) not served by this instance:{broker}. Please redo the lookup."
        super().__init__(ServerError.SERVICE_NOT_READY, message)
        self.topic = topic


class BundleNotFound(BrokerError):
    """No range of the namespace is called so."""

    def __init__(self, namespace: str, text: str) -> None:
        super().__init__(ServerError.NOT_ALLOWED, f"Invalid bundle range: {text[:100]} is no bundle of namespace {namespace}")


class TooManyTopics(BrokerError):
    """The namespace has as many topics as its policy or the broker allows."""

    def __init__(self) -> None:
        super().__init__(ServerError.NOT_ALLOWED, "Exceed maximum number of topics in namespace.")


class BundleUnsettled(BrokerError):
    """Bundle whose owner is being decided: clients try again. With SERVICE_NOT_READY, C++, Go and Java clients would close the
    connection with everything on it, for which reason Apache answers likewise (TopicLookupBase.handleLookupError)."""

    def __init__(self, message: str) -> None:
        super().__init__(ServerError.METADATA, message)


class NoSuchBroker(BrokerError):
    """No broker of this id is registered."""

    def __init__(self, broker: str) -> None:
        super().__init__(ServerError.NOT_ALLOWED, f"Broker {broker[:200]} is not registered: see /admin/v2/brokers")


class NoSuchListener(BrokerError):
    """A lookup names a listener that is not advertised: METADATA fails that lookup alone (`lookups.address_for`)."""

    def __init__(self, listener: str) -> None:
        super().__init__(ServerError.METADATA, f"the broker do not have {listener[:100]} listener")


class TooManyLookups(BrokerError):
    """A lookup above maxConcurrentLookupRequest. Over HTTP Apache answers 503."""

    def __init__(self) -> None:
        super().__init__(ServerError.TOO_MANY_REQUESTS, "Failed due to too many pending lookup requests")
