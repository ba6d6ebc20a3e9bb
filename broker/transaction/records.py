"""Steps of a transaction, as a coordinator's log has them. Pure values.

Apache's TransactionMetadataEntry with its four operations, and TxnStatus.
"""

from enum import IntEnum
from typing import NamedTuple

from wire.position import Position
from wire.record import record
from wire.transactions import TxnAction


class TxnStatus(IntEnum):
    """OPEN, then COMMITTING and COMMITTED, or ABORTING and ABORTED (PIP-31)."""

    OPEN = 0
    COMMITTING = 1
    COMMITTED = 2
    ABORTING = 3
    ABORTED = 4

    @property
    def has_ended(self) -> bool:
        return self in (TxnStatus.COMMITTED, TxnStatus.ABORTED)

    @property
    def action(self) -> TxnAction | None:
        """End of the transaction; None while it is open."""
        if self is TxnStatus.OPEN:
            return None
        return TxnAction.COMMIT if self in (TxnStatus.COMMITTING, TxnStatus.COMMITTED) else TxnAction.ABORT


class TxnSubscription(NamedTuple):
    """One that acknowledged in a transaction."""

    topic: str
    subscription: str


class Place(NamedTuple):
    """Place of a record: an entry, and the index in it where Apache wrote records in batches."""

    position: Position
    part: int = 0
    parts: int = 1


@record(frozen=True, slots=True)
class Opened:
    """A transaction is aborted `timeout_ms` after `start_ms`. `owner`: the principal who may use it; None: every client."""

    least: int
    start_ms: int
    timeout_ms: int
    owner: str | None = None


@record(frozen=True, slots=True)
class PartitionsAdded:
    """Topics that it publishes to."""

    least: int
    partitions: tuple[str, ...]


@record(frozen=True, slots=True)
class SubscriptionsAdded:
    """Subscriptions on which the transaction acknowledges."""

    least: int
    subscriptions: tuple[TxnSubscription, ...]


Participant = str | TxnSubscription
"""A topic that a transaction published to, or a subscription on which it acknowledged."""


def name_of(participant: Participant) -> str:
    """The topic, or topic and subscription."""
    return participant if isinstance(participant, str) else " ".join(participant)


@record(frozen=True, slots=True)
class StatusChanged:
    """One step on the way to its end. `partitions` and `subscriptions`, only of the last step: they had ended it the other
    way before they were asked. Apache's coordinators write none there, and pass over them."""

    least: int
    expected: TxnStatus
    new: TxnStatus
    partitions: tuple[str, ...] = ()
    subscriptions: tuple[TxnSubscription, ...] = ()


Record = Opened | PartitionsAdded | SubscriptionsAdded | StatusChanged
