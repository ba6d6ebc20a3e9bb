"""AuthenticationMeters: accepted and refused authentications, by method (Apache: AuthenticationMetrics and its token
variant).
"""

from collections import Counter

from ports.metrics.histogram import Histogram

from .principals import AuthenticationRefused, Principal

EXPIRING_BOUNDS_MINUTES = (5.0, 10.0, 60.0, 240.0)


class AuthenticationMeters:
    """Meters of one broker, since its start."""

    def __init__(self) -> None:
        self.succeeded: Counter[str] = Counter()
        """By method."""
        self.failed: Counter[tuple[str, str]] = Counter()
        """By method and Apache's code of the reason."""
        self.expired_tokens = 0
        self.expiring_minutes = Histogram(EXPIRING_BOUNDS_MINUTES)
        """Remaining times of accepted tokens that expire."""

    def let_in(self, principal: Principal, now: float) -> None:
        self.succeeded[principal.method] += 1
        if principal.expires_at is not None:
            self.expiring_minutes.record((principal.expires_at - now) / 60)

    def refused(self, method: str, refused: AuthenticationRefused) -> None:
        self.failed[method, refused.code] += 1
        self.expired_tokens += refused.is_expired
