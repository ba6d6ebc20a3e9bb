"""Errors of WebSocket sessions: Apache's WebSocketError, and refusals of an upgrade with an HTTP status. Pure."""

from collections.abc import Mapping
from enum import IntEnum

from wire.generated.pulsar_api_pb2 import ServerError


class WebSocketError(IntEnum):
    """Apache's codes, as in `send-error:3`."""

    FAILED_TO_DESERIALIZE_FROM_JSON = 3
    PAYLOAD_ENCODING_ERROR = 7
    UNKNOWN_ERROR = 8


class CloseCode(IntEnum):
    """Codes of RFC 6455. Apache closes with codes of WebSocketError, which no client accepts."""

    NORMAL = 1000
    GOING_AWAY = 1001
    UNSUPPORTED_DATA = 1003
    INVALID_DATA = 1007
    POLICY_VIOLATION = 1008
    INTERNAL_ERROR = 1011
    TRY_AGAIN_LATER = 1013


class Refused(Exception):
    """Refusal of an upgrade."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class BrokerRefused(Exception):
    """Answer of a broker with an error; `code` is a ServerError."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason or ServerError.Name(ServerError.ValueType(code)))
        self.code = code


class LinkLost(Exception):
    """The connection to a broker ended, or none can be made."""


_STATUSES: Mapping[int, int] = {
    ServerError.AuthenticationError: 401,
    ServerError.AuthorizationError: 403,
    ServerError.TopicNotFound: 404,
    ServerError.SubscriptionNotFound: 404,
    ServerError.ProducerBusy: 409,
    ServerError.ConsumerBusy: 409,
    ServerError.ProducerFenced: 409,
    ServerError.IncompatibleSchema: 409,
    ServerError.InvalidTopicName: 400,
    ServerError.TooManyRequests: 429,
    ServerError.ProducerBlockedQuotaExceededError: 503,
    ServerError.ProducerBlockedQuotaExceededException: 503,
    ServerError.TopicTerminatedError: 503,
    ServerError.ServiceNotReady: 503,
}
"""HTTP statuses of AbstractWebSocketHandler.getErrorCode; a broker that is not ready is 503 here, 500 there."""

PASSING = frozenset(
    {
        ServerError.UnknownError,
        ServerError.MetadataError,
        ServerError.PersistenceError,
        ServerError.ServiceNotReady,
        ServerError.TooManyRequests,
        ServerError.ProducerBusy,
        ServerError.ConsumerBusy,
        ServerError.ConsumerAssignError,
        ServerError.ProducerBlockedQuotaExceededError,
        ServerError.ProducerBlockedQuotaExceededException,
    }
)
"""Answers that a session which was attached before survives: another try, later or elsewhere, may find otherwise."""


def status_of(code: int) -> int:
    """HTTP status for a refused producer or consumer."""
    return _STATUSES.get(code, 500)
