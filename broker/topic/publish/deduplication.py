"""Sequence ids of a topic's producers, and the verdict on each message by them. Pure.

The highest sequence id of each producer name that was pushed (given to the log) is kept apart from the highest that is
persisted (PIP-6, MessageDeduplication). A message not above the persisted one is a repeat; one between the two may or may not
become durable, so that its sender has to ask again. No other message is answered without being stored. Names live as long as
they are in use, and then for a time; at most `producers_max` of them are remembered besides those in use.

All chunks of a message have one sequence id, which counts as pushed with the last of them. Chunks that are sent again before
that are known by the message's uuid and size (where Apache stores them twice). A batch of which a part is persisted can be
neither stored nor called a repeat: it is refused (Apache calls it a repeat, and loses the other part).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

NOTHING = -1
"""The sequence id of a name that nothing is known of."""
SLACK = 100
"""Surplus of names that is kept before the oldest are forgotten, so that not each new one causes a search."""


class Verdict(Enum):
    """Verdict on a message."""

    STORE = "store"
    REPEATED = "it is stored: a receipt without being stored again"
    UNKNOWN = "it, or one before it, may come to be stored or not: an error, after which the client sends it again"
    STRADDLES = "a part of the batch is stored: an error"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: `message` identifies the chunked message, `index` counts from 0."""

    message: tuple[str, int, int]
    """The uuid, the number of chunks, the size of the whole."""
    index: int

    @property
    def is_last(self) -> bool:
        return self.index >= self.message[1] - 1


@dataclass(slots=True)
class _Chunks:
    """Chunks of the one message of a producer that is not complete yet."""

    message: tuple[str, int, int]
    pushed: int
    persisted: int


@dataclass(slots=True)
class _Producer:
    """persisted <= pushed, and equal when nothing is in flight."""

    active_ms: int
    pushed: int | None = None
    persisted: int | None = None
    in_flight: int = 0
    """Appends that are not answered."""
    chunks: _Chunks | None = None
    refused_from: int | None = None
    """A message that was refused and may come again: were one above it stored, it would be taken for a repeat then."""

    def is_out_of_turn(self, first: int) -> bool:
        """Whether a message comes after one that was refused. The refused one is next, or an older one."""
        if self.refused_from is None:
            return False
        if first > self.refused_from:
            return True
        self.refused_from = None
        return False

    def settle(self) -> None:
        """No message is in flight: ids pushed and not persisted will not be."""
        self.pushed = self.persisted
        if self.chunks is not None:
            self.chunks.pushed = self.chunks.persisted


@dataclass(slots=True)
class Deduplication:
    """Deduplication of one topic. `unsaved_entries` counts the entries persisted since the last snapshot."""

    producers_max: int
    unsaved_entries: int = 0
    _producers: dict[str, _Producer] = field(default_factory=dict)

    # questions

    def last_pushed(self, name: str) -> int:
        """The last sequence id of a producer, for PRODUCER_SUCCESS; NOTHING when there is none."""
        found = self._producers.get(name)
        return NOTHING if found is None or found.pushed is None else found.pushed

    def in_flight(self, name: str) -> int:
        """Appends of a producer that are not answered yet."""
        found = self._producers.get(name)
        return 0 if found is None else found.in_flight

    @property
    def count(self) -> int:
        """Names that something is known of."""
        return len(self._producers)

    # publishing

    def push_run(self, name: str, first: int, last: int, now_ms: int) -> bool:
        """Whether a run of messages with these ids, ascending, is new as a whole: then it is pushed, as one append."""
        producer = self._producer(name, now_ms)
        if (producer.pushed is not None and first <= producer.pushed) or producer.is_out_of_turn(first):
            return False
        producer.pushed = last
        producer.in_flight += 1
        return True

    def judge(self, name: str, first: int, last: int, chunk: Chunk | None, now_ms: int) -> Verdict:
        """Verdict on one entry. STORE: the ids count as pushed, and an append is awaited (`begin_append`)."""
        producer = self._producer(name, now_ms)
        if producer.is_out_of_turn(first):
            return Verdict.UNKNOWN
        if producer.persisted is not None and first <= producer.persisted:
            if last <= producer.persisted or chunk is not None:
                return Verdict.REPEATED
            producer.refused_from = first
            return Verdict.STRADDLES
        if producer.pushed is not None and first <= producer.pushed:
            return Verdict.UNKNOWN
        if chunk is not None:
            return _judge_chunk(producer, last, chunk)
        producer.pushed = last
        return Verdict.STORE

    def came(self, name: str) -> None:
        """A client of that name begins anew, with the oldest message that it has no receipt for."""
        found = self._producers.get(name)
        if found is not None:
            found.refused_from = None

    def refused(self, name: str, first: int, now_ms: int) -> None:
        """A message of that id was refused, by others, and may come again."""
        producer = self._producer(name, now_ms)
        producer.refused_from = first if producer.refused_from is None else min(first, producer.refused_from)

    def touch(self, name: str, now_ms: int) -> None:
        """The name is in use."""
        self._producer(name, now_ms)

    def begin_append(self, name: str) -> None:
        """Entries that `judge` let pass are given to the log, in one append."""
        self._producers[name].in_flight += 1

    def note(self, name: str, last: int, now_ms: int) -> None:
        """An append without a verdict, because earlier ids are not known yet. NOTHING: chunks without a last one."""
        producer = self._producer(name, now_ms)
        if last != NOTHING:
            producer.pushed = _later(producer.pushed, last)
        producer.in_flight += 1

    # outcomes

    def stored(self, name: str, last: int, chunk: Chunk | None, entries: int) -> None:
        """An append is durable: up to `last` (NOTHING: no message is whole by it), and up to the chunk."""
        producer = self._producers[name]
        producer.in_flight -= 1
        self._persist(producer, last, chunk, entries)
        if producer.in_flight == 0:
            producer.settle()

    def failed(self, name: str) -> None:
        """An append is not durable. The pushed id falls back when nothing else is in flight."""
        producer = self._producers[name]
        producer.in_flight -= 1
        if producer.in_flight == 0:
            producer.settle()

    def replayed(self, name: str, last: int, chunk: Chunk | None, now_ms: int) -> None:
        """An entry that was found in the log."""
        producer = self._producer(name, now_ms)
        if chunk is not None and producer.chunks is not None and producer.chunks.message != chunk.message:
            producer.chunks = None  # the one before was never whole
        self._persist(producer, last, chunk, 1)

    def _persist(self, producer: _Producer, last: int, chunk: Chunk | None, entries: int) -> None:
        self.unsaved_entries += entries
        if last != NOTHING:
            producer.persisted = _later(producer.persisted, last)
            producer.pushed = _later(producer.pushed, producer.persisted)
        if chunk is None:
            return
        known = producer.chunks
        if known is None and not chunk.is_last:
            producer.chunks = _Chunks(chunk.message, chunk.index, chunk.index)
        elif known is not None and known.message == chunk.message:  # else the producer is at its next message already
            known.persisted = max(known.persisted, chunk.index)
            known.pushed = max(known.pushed, chunk.index)
            producer.chunks = None if chunk.is_last else known

    # names

    def restore(self, snapshot: Mapping[str, int], now_ms: int) -> None:
        """Takes in a snapshot."""
        for name, last in snapshot.items():
            producer = self._producer(name, now_ms)
            producer.persisted = _later(producer.persisted, last)
            producer.pushed = _later(producer.pushed, last)

    def snapshot(self) -> dict[str, int]:
        """Producer names with their persisted ids; the most recently active `producers_max` of them. Counts from 0 again."""
        self.unsaved_entries = 0
        known = [(name, found.persisted) for name, found in self._producers.items() if found.persisted is not None]
        if len(known) > self.producers_max:
            known.sort(key=lambda each: self._producers[each[0]].active_ms)
            known = known[len(known) - self.producers_max :]
        return dict(known)

    def purge(self, in_use: Collection[str], before_ms: int, now_ms: int) -> int:
        """Forgets unused names: those last seen in use before that time, and the oldest of those too many. Returns their
        number.
        """
        idle = []
        for name, producer in self._producers.items():
            if name in in_use or producer.in_flight:
                producer.active_ms = now_ms
            else:
                idle.append((producer.active_ms, name))
        idle.sort()
        surplus = len(self._producers) - self.producers_max
        gone = [name for place, (active_ms, name) in enumerate(idle) if active_ms < before_ms or place < surplus]
        for name in gone:
            del self._producers[name]
        return len(gone)

    @property
    def has_too_many(self) -> bool:
        """Whether a `purge` is due, independently of the clock."""
        return len(self._producers) > self.producers_max + SLACK

    def _producer(self, name: str, now_ms: int) -> _Producer:
        producer = self._producers.get(name)
        if producer is None:
            producer = self._producers[name] = _Producer(now_ms)
        producer.active_ms = now_ms
        return producer

    def check_invariants(self) -> None:
        for producer in self._producers.values():
            assert producer.in_flight >= 0
            assert producer.persisted is None or (producer.pushed is not None and producer.persisted <= producer.pushed)
            assert producer.in_flight or producer.pushed == producer.persisted


def _judge_chunk(producer: _Producer, last: int, chunk: Chunk) -> Verdict:
    """Verdict on a chunk of a message that is not stored completely, nor about to be."""
    known = producer.chunks
    if known is None or known.message != chunk.message:
        known = producer.chunks = _Chunks(chunk.message, NOTHING, NOTHING)
    elif chunk.index <= known.persisted:
        return Verdict.REPEATED
    elif chunk.index <= known.pushed:
        return Verdict.UNKNOWN
    if chunk.is_last:
        producer.pushed = last
    else:
        known.pushed = chunk.index
    return Verdict.STORE


def _later(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)
