"""Rows: the fields that the steps of many short appends read and write, as columns that a compiled kernel reaches.

A row is the base of the class that owns its fields: that class decides, changes them and keeps their invariants; a kernel
(`turns`) steps them where the case is plain, exactly as the class would. There is no copy and no flag beside them. Compiled,
they are C structures; as plain Python they are classes with slots.
"""

from array import array
from collections import deque
from copy import deepcopy
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Self


class Row:
    """Base of all rows."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """With the columns, and with what the class has that derives from the row."""
        kind: Any = type(self)
        made: Self = kind.__new__(kind)
        memo[id(self)] = made
        for each in kind.__mro__:
            for name, member in vars(each).items():
                if isinstance(member, GetSetDescriptorType | MemberDescriptorType) and not name.startswith("__"):
                    if hasattr(self, name):
                        setattr(made, name, deepcopy(getattr(self, name), memo))
        for name, value in getattr(self, "__dict__", {}).items():
            setattr(made, name, deepcopy(value, memo))
        return made


class PartRow(Row):
    """One append in flight: see `bookkeeper.write.parts.Part`."""

    __slots__ = (
        "acked",
        "adds",
        "began",
        "count",
        "error",
        "first_entry_id",
        "is_done",
        "last_add_confirmed",
        "last_entry_id",
        "ledger_id",
        "length_before",
        "mix",
        "owner",
        "piece",
        "place",
        "sends",
        "size_bytes",
        "source",
        "start",
    )

    mix: Any
    start: int
    count: int
    size_bytes: int
    owner: Any
    source: Any
    began: float
    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    error: BaseException | None
    is_done: bool
    adds: Any
    acked: int
    piece: int
    last_add_confirmed: int
    length_before: int
    sends: Any
    place: int


OUTSTANDING_ENTRIES_MAX = 50_000
OUTSTANDING_BYTES_MAX = 32 * 1024 * 1024
"""Sent to bookies and not confirmed, of one ledger. One run may be larger."""


class AddsRow(Row):
    """Adds of one ledger under way: see `bookkeeper.write.counted_adds.CountedAdds`."""

    __slots__ = (
        "_ack_quorum",
        "_counts",
        "_late_timer",
        "_outstanding_bytes",
        "_outstanding_entries",
        "_pending",
        "_quorum_timeout",
        "_when_drained",
        "last_confirmed",
        "route",
    )

    last_confirmed: int
    route: Any
    _ack_quorum: int
    _counts: bool
    _late_timer: Any
    _outstanding_bytes: int
    _outstanding_entries: int
    _pending: "deque[Any] | None"
    _quorum_timeout: float
    _when_drained: list[Any]


class WriterRow(Row):
    """An open ledger: see `bookkeeper.write.writer.BookieLedgerWriter`."""

    __slots__ = (
        "_adds",
        "_closing",
        "_explicit_lac",
        "_header_bytes",
        "_length",
        "_next_entry_id",
        "_takes_parts",
        "ledger_id",
    )

    ledger_id: int
    _adds: Any
    _closing: Any
    _explicit_lac: Any
    _header_bytes: int
    _length: int
    _next_entry_id: int
    _takes_parts: bool


class SpanRow(Row):
    """One ledger of a log: see `managed_ledger.ledgers.sequence.LedgerSpan`."""

    __slots__ = ("closed_at_ms", "entries", "first_index", "is_open", "ledger_id", "size_bytes")

    ledger_id: int
    first_index: int
    entries: int
    size_bytes: int
    closed_at_ms: int
    is_open: bool


class SequenceRow(Row):
    """The ledgers of a log: see `managed_ledger.ledgers.sequence.LedgerSequence`."""

    __slots__ = ("_confirmed_entry", "_confirmed_ledger", "_end_index", "_last", "size_bytes")

    size_bytes: int
    _confirmed_entry: int
    _confirmed_ledger: int
    _end_index: int
    _last: Any


class MetersRow(Row):
    """Counters of one log: see `managed_ledger.meters.LedgerMeters`."""

    __slots__ = (
        "_appends",
        "_latency_bounds",
        "_size_bounds",
        "append_latencies",
        "append_seconds",
        "entries",
        "entry_sizes",
        "payload_bytes",
    )

    append_latencies: "array[int]"
    append_seconds: float
    entries: int
    entry_sizes: "array[int]"
    payload_bytes: int
    _appends: Any
    _latency_bounds: "array[float]"
    _size_bounds: "array[float]"


class ListenersRow(Row):
    """Listeners to a log: see `managed_ledger.append.listeners.ConfirmedListeners`."""

    __slots__ = ("_is_due", "_more", "_new")

    _is_due: bool
    _more: list[Any]
    _new: Any


class AppenderRow(Row):
    """Appends of one log: see `managed_ledger.append.append_driver.Appender`."""

    __slots__ = (
        "_age_s_max",
        "_age_s_min",
        "_entries_max",
        "_failure",
        "_fruitless",
        "_heard",
        "_is_broken",
        "_is_ending",
        "_is_idle",
        "_listeners",
        "_meters",
        "_opened_at",
        "_refusal",
        "_sent",
        "_sequence",
        "_size_bytes_max",
        "_waiting",
        "_writer",
    )

    _age_s_max: float
    _age_s_min: float
    _entries_max: int
    _failure: Any
    _fruitless: int
    _heard: Any
    _is_broken: bool
    _is_ending: bool
    _is_idle: bool
    _listeners: Any
    _meters: Any
    _opened_at: float
    _refusal: Any
    _sent: "deque[Any] | None"
    _sequence: Any
    _size_bytes_max: int
    _waiting: "deque[Any] | None"
    _writer: Any


class CountersRow(Row):
    """Messages that were sent: see `broker.topic.statistics.rates.PublishCounters`."""

    __slots__ = ("chunks", "dropped", "messages", "payload_bytes")

    messages: int
    payload_bytes: int
    chunks: int
    dropped: int


class PublishersRow(Row):
    """The producers of a topic: see `broker.topic.publish.publishers.Publishers`."""

    __slots__ = ("_appends", "_throttles", "_transactions", "counters", "deduplication", "last_publish_ms")

    _appends: Any
    _throttles: tuple[Any, ...]
    _transactions: Any
    counters: Any
    deduplication: Any
    last_publish_ms: int


class ProducerRow(Row):
    """One producer: see `broker.topic.publish.producer.TopicProducer`."""

    __slots__ = (
        "_host",
        "_is_broken",
        "_parts",
        "_parts_answered",
        "_sink",
        "_unanswered",
        "counters",
        "delay_ms_max",
        "is_closed",
        "is_encryption_required",
        "is_held",
        "is_ready",
        "message_size_max",
    )

    counters: Any
    delay_ms_max: int
    is_closed: bool
    is_encryption_required: bool
    is_held: bool
    is_ready: bool
    message_size_max: int
    _host: Any
    _is_broken: bool
    _parts: int
    _parts_answered: Any
    _sink: Any
    _unanswered: "deque[Any] | None"


class ReceiptsRow(Row):
    """Receipts that are to be written: see `broker.connection.producers.receipts.Receipts`."""

    __slots__ = ("_owners", "parts")

    parts: list[Any]
    _owners: list[Any]


class HandleRow(Row):
    """A producer as its connection knows it: see `broker.connection.producers.producer_handle.ProducerHandle`."""

    __slots__ = ("_done", "_on_drained", "_published", "_receipts", "_refused", "header_bytes", "producer")

    header_bytes: int
    producer: Any
    _done: int
    _on_drained: Any
    _published: int
    _receipts: Any
    _refused: "deque[Any] | None"
