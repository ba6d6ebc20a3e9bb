"""How many lookups may be under way at a time (maxConcurrentLookupRequest; Apache: BrokerService.getLookupRequestSemaphore).

Clients back off when they are told that there are too many. The limit is dynamic, and counted in the broker's meters.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import BrokerError, ServerError
from ..broker_service import BrokerService


class TooManyLookups(BrokerError):
    """Over HTTP Apache answers this with 503."""

    def __init__(self) -> None:
        super().__init__(ServerError.TOO_MANY_REQUESTS, "Failed due to too many pending lookup requests")


@contextmanager
def pending_lookup(service: BrokerService) -> Iterator[None]:
    """TooManyLookups."""
    meters = service.meters
    if meters.lookups_pending >= service.settings.max_concurrent_lookup_request:
        raise TooManyLookups
    meters.lookups_pending += 1
    try:
        yield
    finally:
        meters.lookups_pending -= 1
