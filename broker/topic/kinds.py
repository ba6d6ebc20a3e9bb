"""What topics are made of that store what they get, and what others put in its place (`non_persistent`)."""

from dataclasses import dataclass

from ..policies.in_force import PoliciesInForce
from .publish.publishers import Publishers
from .subscription.subscription import Subscription


@dataclass(frozen=True, slots=True)
class TopicKind:
    """The classes of a topic's parts."""

    policies: type[PoliciesInForce]
    publishers: type[Publishers]
    subscription: type[Subscription]


STORED = TopicKind(PoliciesInForce, Publishers, Subscription)
