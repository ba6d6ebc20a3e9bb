"""Limits of all topics of a broker: rates of publishing and dispatching, a maximum of unacknowledged messages, and disks."""

import asyncio
from collections.abc import Callable

from ...policies.in_force import SharedPolicies
from ...policies.topic_settings import TopicSettings
from .publish_throttle import PublishThrottle
from .token_buckets import RateLimiter
from .unacked_limit import BrokerUnacked


def nothing_refused() -> str:
    return ""


class BrokerLimits:
    """Limits of a broker; None: not limited. Call `refresh` before a look at `publish` and `dispatch`; on the loop."""

    def __init__(self, settings: TopicSettings, storage_refusal: Callable[[], str] = nothing_refused) -> None:
        """`storage_refusal`: why no message can be stored now, such as a full disk; empty: it can."""
        self._settings = settings
        self.storage_refusal = storage_refusal
        self._publish_rate = self._dispatch_rate = (0, 0)
        self.policies = SharedPolicies()
        """Policies of this broker's topics."""
        self.publish: PublishThrottle | None = None
        self.dispatch: RateLimiter | None = None
        limit, share = (
            settings.max_unacked_messages_per_broker,
            settings.max_unacked_messages_per_subscription_on_broker_blocked,
        )
        self.unacked = BrokerUnacked(limit, share) if limit > 0 and share > 0 else None
        """Does not change while the broker runs, as in Apache."""

    def refresh(self) -> None:
        """Settings change while brokers run; a rate that stays keeps its state."""
        settings = self._settings
        publish_rate = (
            settings.broker_publisher_throttling_max_message_rate,
            settings.broker_publisher_throttling_max_byte_rate,
        )
        dispatch_rate = (settings.dispatch_throttling_rate_in_msg, settings.dispatch_throttling_rate_in_byte)
        if publish_rate != self._publish_rate:
            self._publish_rate = publish_rate
            if self.publish is not None:
                self.publish.close()
            self.publish = PublishThrottle(*publish_rate) if max(publish_rate) > 0 else None
        if dispatch_rate != self._dispatch_rate:
            self._dispatch_rate = dispatch_rate
            now = asyncio.get_running_loop().time()
            self.dispatch = RateLimiter(*dispatch_rate, 1.0, now) if max(dispatch_rate) > 0 else None
