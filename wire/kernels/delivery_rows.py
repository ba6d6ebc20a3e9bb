"""Rows of what hands entries out and of what is acknowledged: see `rows`. `newest` steps them."""

from collections import deque
from typing import Any

from wire.kernels.rows import Row


class SubscriptionsRow(Row):
    """The subscriptions of a topic: see `broker.topic.subscription.subscriptions.Subscriptions`."""

    __slots__ = ("_by_name", "_transactions")

    _by_name: dict[str, Any]
    _transactions: Any


class SubscriptionRow(Row):
    """One subscription: see `broker.topic.subscription.subscription.Subscription`."""

    __slots__ = (
        "_consumers",
        "_driver",
        "_last_mark_delete",
        "cursor",
        "is_fenced",
        "last_active_s",
        "mark_delete_advanced_ms",
    )

    cursor: Any
    is_fenced: bool
    last_active_s: float
    mark_delete_advanced_ms: int
    _consumers: dict[Any, Any]
    _driver: Any
    _last_mark_delete: Any


class DriverRow(Row):
    """A dispatcher at work: see `broker.topic.dispatch.dispatch_driver.DispatchDriver`."""

    __slots__ = (
        "_cursor",
        "_events",
        "_held",
        "_is_closed",
        "_is_handling",
        "_reading",
        "_throttle",
        "compacted",
        "dispatcher",
        "on_unacked",
        "targets",
    )

    compacted: Any
    dispatcher: Any
    on_unacked: Any
    targets: dict[Any, Any]
    _cursor: Any
    _events: "deque[Any] | None"
    _held: Any
    _is_closed: bool
    _is_handling: bool
    _reading: Any
    _throttle: Any


class CursorRow(Row):
    """A cursor: see `managed_ledger.cursor.cursor_driver.MemoryCursor`."""

    __slots__ = ("_planned", "acknowledgements")

    acknowledgements: Any
    _planned: int | None
    """None: nothing is planned that stores what is acknowledged now."""


class AcknowledgementsRow(Row):
    """Acknowledgements of a cursor: see `managed_ledger.cursor.acknowledgements.Acknowledgements`."""

    __slots__ = ("_batches", "_holes", "_ledgers", "_mark_delete", "version")

    version: int
    _batches: Any
    _holes: Any
    _ledgers: Any
    _mark_delete: Any


class HolesRow(Row):
    """Entries acknowledged beyond mark-delete: see `managed_ledger.cursor.holes.holes.Holes`."""

    __slots__ = ("count", "pages")

    count: int
    pages: Any


SHARED, SINGLE_ACTIVE = 1, 2
"""Values of `MachineRow.deals`: ways in which a dispatcher gives the newest entries away; 0: not by `newest`."""


class MachineRow(Row):
    """A dispatcher: see `broker.dispatchers.machine.Machine` and who derives from it. What one kind has not is None."""

    __slots__ = (
        "_active",
        "_chunked",
        "_held_back",
        "_is_loading",
        "_last_delivered",
        "_picked_to",
        "_reader",
        "_reads_far",
        "_receivers",
        "_redeliveries",
        "_replay",
        "_successor",
        "_switch_at_ms",
        "_turns",
        "deals",
    )

    deals: int
    _active: Any
    _chunked: Any
    _held_back: Any
    _is_loading: bool
    _last_delivered: Any
    _picked_to: Any
    _reader: Any
    _reads_far: bool
    _receivers: Any
    _redeliveries: Any
    _replay: Any
    _successor: Any
    _switch_at_ms: int | None
    _turns: Any


class ReaderRow(Row):
    """Read position of a dispatcher: see `broker.dispatchers.reading.reader.Reader`."""

    __slots__ = ("_backoff_ms", "_messages_per_entry", "_outstanding", "is_at_end", "position", "retry_at_ms")

    is_at_end: bool
    position: Any
    retry_at_ms: int | None
    _backoff_ms: int
    _messages_per_entry: float
    _outstanding: Any


class EntrySetRow(Row):
    """Entries by ledger: see `broker.dispatchers.entry_sets.EntrySet`."""

    __slots__ = ("_by_ledger", "_spare")

    _by_ledger: dict[int, Any]
    _spare: Any
    """An empty bitmap, for the next ledger: of who has one entry at a time none is made and thrown away for each."""


class ReceiverRow(Row):
    """A consumer of a Shared subscription: see `broker.dispatchers.permits.Receiver`."""

    __slots__ = ("consumer", "is_blocked", "is_writable", "name", "pending", "permits", "priority_level", "unacked_messages")

    consumer: Any
    is_blocked: bool
    is_writable: bool
    name: str
    pending: Any
    permits: int
    priority_level: int
    unacked_messages: int


class ReceiversRow(Row):
    """All of them: see `broker.dispatchers.permits.Receivers`."""

    __slots__ = ("_by_id", "_limit", "_limit_together", "_message_counts", "is_blocked", "unacked_messages")

    is_blocked: bool
    unacked_messages: int
    _by_id: dict[Any, Any]
    _limit: int
    _limit_together: int
    _message_counts: dict[int, dict[int, int]]


class LevelRow(Row):
    """The consumers of one priority: see `broker.dispatchers.turns`."""

    __slots__ = ("members", "next")

    members: list[Any]
    next: int


class CandidateRow(Row):
    """A consumer that is or may become the active one: see `broker.dispatchers.single_active`."""

    __slots__ = ("consumer", "consumer_epoch", "is_writable", "permits", "slots")

    consumer: Any
    consumer_epoch: int | None
    is_writable: bool
    permits: int
    slots: Any


class DeliveriesRow(Row):
    """Deliveries to consumers: see `broker.topic.statistics.rates.DeliveryCounters`."""

    __slots__ = ("acknowledged", "entries", "messages", "payload_bytes", "redelivered")

    acknowledged: int
    entries: int
    messages: int
    payload_bytes: int
    redelivered: int


class ConsumerRow(Row):
    """One consumer: see `broker.topic.subscription.consumer.TopicConsumer`."""

    __slots__ = (
        "_sink",
        "_subscription",
        "_was_writable",
        "counters",
        "is_closed",
        "key",
        "last_acknowledgement_ms",
        "last_delivery_ms",
    )

    counters: Any
    is_closed: bool
    key: Any
    last_acknowledgement_ms: int
    last_delivery_ms: int
    _sink: Any
    _subscription: Any
    _was_writable: bool


class ConsumerHandleRow(Row):
    """A consumer as its connection knows it: see `broker.connection.consumers.consumer_handle.ConsumerHandle`."""

    __slots__ = ("_is_plain", "_link", "_partition", "consumer", "consumer_id")

    consumer: Any
    consumer_id: int
    _is_plain: bool
    """The consumer gets entries as they are stored, with checksums and without what the broker has added."""
    _link: Any
    _partition: int
