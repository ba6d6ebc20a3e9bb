"""BrokerError: the error that a client gets. The one place where failures get their wire code (PulsarApi ServerError)."""

from enum import IntEnum


class ServerError(IntEnum):
    """PulsarApi.ServerError. A wrong code turns an instant error into a 30 s hang in the clients (surface section 1.8)."""

    UNKNOWN = 0
    METADATA = 1
    PERSISTENCE = 2
    AUTHENTICATION = 3
    AUTHORIZATION = 4
    CONSUMER_BUSY = 5
    SERVICE_NOT_READY = 6
    PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR = 7
    PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION = 8
    CHECKSUM = 9
    UNSUPPORTED_VERSION = 10
    TOPIC_NOT_FOUND = 11
    SUBSCRIPTION_NOT_FOUND = 12
    CONSUMER_NOT_FOUND = 13
    TOO_MANY_REQUESTS = 14
    TOPIC_TERMINATED = 15
    PRODUCER_BUSY = 16
    INVALID_TOPIC_NAME = 17
    INCOMPATIBLE_SCHEMA = 18
    CONSUMER_ASSIGN = 19
    TRANSACTION_COORDINATOR_NOT_FOUND = 20
    INVALID_TXN_STATUS = 21
    NOT_ALLOWED = 22
    TRANSACTION_CONFLICT = 23
    TRANSACTION_NOT_FOUND = 24
    PRODUCER_FENCED = 25


class BrokerError(Exception):
    """A request that cannot be done, with the code and the sentence that the client gets."""

    def __init__(self, code: ServerError, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
