"""Failures of a command-line client: for good, or for now."""

from wire.generated.pulsar_api_pb2 import ServerError

_PASSING = frozenset(
    {
        ServerError.UnknownError,
        ServerError.MetadataError,
        ServerError.PersistenceError,
        ServerError.ServiceNotReady,
        ServerError.ChecksumError,
        ServerError.TooManyRequests,
        ServerError.ProducerBlockedQuotaExceededError,
        ServerError.ProducerBlockedQuotaExceededException,
        ServerError.TransactionCoordinatorNotFound,
    }
)
"""Answers that another try, later or elsewhere, may find otherwise."""
_LEFT_BEHIND = frozenset({ServerError.ConsumerBusy, ServerError.ProducerBusy, ServerError.ConsumerAssignError})
"""Answers that a client gets from a broker which has not seen yet that the connection before is gone."""


class ClientError(Exception):
    """A failure for good; the text says the request and its server, the answer, and what to do."""


class Passing(ClientError):
    """A failure for now: another try is worth it."""


class Unreachable(Passing):
    """No connection could be made."""


class OwnerAway(Passing):
    """A broker names another one, which cannot be reached: it may be dead, and its topics not yet taken over."""


class Lost(Passing):
    """The connection ended, or the broker took its producer or consumer away."""


class RefusedByBroker(ClientError):
    """An answer with an error; `code` is a ServerError."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code

    @property
    def is_passing(self) -> bool:
        return self.code in _PASSING


def is_passing(error: ClientError, *, was_there: bool) -> bool:
    """Tell whether another try is worth it. `was_there`: this client was let in before, and is only coming back."""
    if isinstance(error, RefusedByBroker):
        return error.is_passing or (was_there and error.code in _LEFT_BEHIND)
    return isinstance(error, Passing)
