"""Parts of a topic that stores its messages, and their replacements in `non_persistent`."""

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
