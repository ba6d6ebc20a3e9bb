"""Steps on one topic, by its seed: in phases, between which the server is killed. Pure."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeAlias

from .messages import Author, Kind, Message, Sent, Taste, any_entry, any_message, any_taste, chunks, in_transaction

_LEAST_BITS = 1 << 32
"""Number of transaction ids for 4,096 seeds: the transactions of a seed have numbers of their own."""


@dataclass(frozen=True, slots=True)
class Send:
    """Entries by several producers over one connection, in this order."""

    partition: int
    entries: tuple[tuple[str, Sent], ...]


@dataclass(frozen=True, slots=True)
class SendByClient:
    """Messages by Apache's client for Python, with these options of its producer."""

    partition: int
    name: str
    messages: tuple[Message, ...]
    options: dict[str, Any]
    is_encrypted: bool


@dataclass(frozen=True, slots=True)
class End:
    txn: int
    is_committed: bool


@dataclass(frozen=True, slots=True)
class Unload:
    pass


@dataclass(frozen=True, slots=True)
class Compact:
    pass


@dataclass(frozen=True, slots=True)
class Look:
    """Reads what is there, up to the first open transaction."""


Step: TypeAlias = Send | SendByClient | End | Unload | Compact | Look


@dataclass(frozen=True, slots=True)
class Recipe:
    seed: int
    partitions: int
    """0 for a topic without."""
    deduplicates: bool
    is_trimmed: bool
    phases: tuple[tuple[Step, ...], ...]

    @property
    def parts(self) -> int:
        return max(1, self.partitions)


PHASES = 2


@dataclass(slots=True)
class _Writer:
    """State while the steps are made up."""

    rng: Random
    seed: int
    taste: Taste
    parts: int
    deduplicates: bool
    is_trimmed: bool
    authors: dict[tuple[int, str], Author] = field(default_factory=dict)
    sent: list[tuple[int, str, Sent]] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    marks: int = 0
    txns: int = 0
    clients: int = 0


def recipe_of(seed: int) -> Recipe:
    rng = Random(seed)
    partitions = rng.choice((0, 0, 0, 0, 1, 3))
    deduplicates = rng.random() < 0.2
    is_trimmed = not deduplicates and rng.random() < 0.25  # the broker's own cursor keeps what it has no snapshot of
    at = _Writer(rng, seed, any_taste(rng), max(1, partitions), deduplicates, is_trimmed)
    phases = tuple(tuple(_phase(at, number == PHASES - 1)) for number in range(PHASES))
    return Recipe(seed, partitions, deduplicates, is_trimmed, phases)


def _phase(at: _Writer, is_last: bool) -> list[Step]:
    steps: list[Step] = []
    for _ in range(at.rng.choice((0, 1, 2, 3, 5) if not is_last else (1, 1, 2, 4))):
        steps += _some(at)
    if is_last:
        steps += [End(txn, at.rng.random() < 0.5) for txn in at.open]
    return steps


def _some(at: _Writer) -> list[Step]:
    rng = at.rng
    which = rng.choices(
        ("entries", "chunks", "client", "transaction", "end", "unload", "look", "compact", "repeat"),
        (8, 3, 3, 2, 2, 4, 1, 1, 2),
    )[0]
    match which:
        case "chunks":
            return [_send(at, _chunked(at))]
        case "client":
            return [_by_client(at)]
        case "transaction":
            return [_transaction(at)]
        case "end":
            if not at.open:
                return [_send(at, _entries(at))]
            return [End(at.open.pop(rng.randrange(len(at.open))), rng.random() < 0.5)]
        case "repeat" if at.deduplicates and at.sent:
            return [_repeat(at)]
        case "unload":
            return [Unload()]
        case "look":
            return [Look()]
        case "compact" if not at.is_trimmed:  # a compaction has a cursor too
            return [Compact()]
    return [_send(at, _entries(at))]


_Items: TypeAlias = list[tuple[str, Sent]]


def _author(at: _Writer, partition: int, name: str) -> Author:
    return at.authors.setdefault((partition, name), Author(name, replicates=not at.deduplicates))


def _mark(at: _Writer) -> str:
    at.marks += 1
    return f"{at.seed}.{at.marks}"


def _send(at: _Writer, made: tuple[int, _Items]) -> Send:
    partition, items = made
    at.sent += [(partition, name, each) for name, each in items if _is_deduplicated(each)]
    return Send(partition, tuple(items))


def _is_deduplicated(sent: Sent) -> bool:
    """A marker never is, and of chunks and transactions it is not as plain."""
    return sent.chunk is None and sent.txn is None and sent.kind is not Kind.NOTHING


def _entries(at: _Writer, names: tuple[str, ...] = ("p", "q", "ü")) -> tuple[int, _Items]:
    rng = at.rng
    partition = rng.randrange(at.parts)
    items = []
    for _ in range(rng.choice((1, 3, 10, 30))):
        author = _author(at, partition, rng.choice(names))
        items.append((author.name, any_entry(rng, author, at.taste, _mark(at))))
    return partition, items


def _chunked(at: _Writer) -> tuple[int, _Items]:
    """Messages of several producers, their chunks among each other; some of them lack some, or have some twice."""
    rng = at.rng
    partition = rng.randrange(at.parts)
    lanes = []
    for name in rng.sample(("c", "d", "e"), rng.randint(1, 3)):
        author = _author(at, partition, name)
        lane: list[Sent] = []
        for _ in range(rng.randint(1, 3)):
            whole = chunks(rng, author, at.taste, _mark(at), rng.choice((2, 3, 7, 20)))
            found = _flawed(rng, whole, at.deduplicates)
            lane += found if found is whole else [replace(each, is_odd_to_clients=True) for each in found]
        lanes.append((name, lane))
    others = [(name, [each]) for name, each in _entries_in(at, partition)]
    return partition, _shuffled(rng, lanes + others)


def _entries_in(at: _Writer, partition: int) -> _Items:
    author = _author(at, partition, "p")
    return [("p", any_entry(at.rng, author, at.taste, _mark(at))) for _ in range(at.rng.randrange(4))]


def _flawed(rng: Random, whole: list[Sent], deduplicates: bool) -> list[Sent]:
    """With deduplication brokers drop what was there, and refuse what cannot be."""
    kinds = ["whole", "whole", "no end"]
    if not deduplicates:
        kinds += ["no beginning", "gap", "again", "twice", "repeat"]
    match rng.choice(kinds):
        case "no end":
            return whole[: rng.randrange(1, len(whole))]
        case "no beginning":
            return whole[1:]
        case "gap":
            gap = rng.randrange(len(whole))
            return whole[:gap] + whole[gap + 1 :]
        case "again":  # as a producer that was cut off from its broker
            return whole[: rng.randrange(1, len(whole))] + whole
        case "twice":
            return whole + whole
        case "repeat":
            at = rng.randrange(len(whole))
            return whole[: at + 1] + whole[at:]
    return whole


def _shuffled(rng: Random, lanes: list[tuple[str, list[Sent]]]) -> _Items:
    """Items in the order of each producer: lanes of one name one after the other."""
    by_name: dict[str, list[Sent]] = {}
    for name, lane in lanes:
        by_name.setdefault(name, []).extend(lane)
    left = {name: list(reversed(lane)) for name, lane in by_name.items() if lane}
    items = []
    while left:
        name = rng.choice(list(left))
        count = min(rng.choice((1, 1, 3, 50)), len(left[name]))
        items += [(name, left[name].pop()) for _ in range(count)]
        if not left[name]:
            del left[name]
    return items


def _transaction(at: _Writer) -> Send:
    rng = at.rng
    partition, items = _entries(at, ("t",))
    if rng.random() < 0.3:
        author = _author(at, partition, "t")
        items += [("t", each) for each in chunks(rng, author, at.taste, _mark(at), 3)]
    if at.open and rng.random() < 0.3:
        txn = rng.choice(at.open)
    else:
        at.txns += 1
        txn = at.seed * _LEAST_BITS // (1 << 12) + at.txns
        at.open.append(txn)
    sent = in_transaction([each for _, each in items[:10]], txn)
    return Send(partition, tuple(("t", each) for each in sent))


def _repeat(at: _Writer) -> Send:
    """Earlier messages sent once more: in the order of each producer."""
    partition = at.rng.choice(at.sent)[0]
    some = [(name, each) for part, name, each in at.sent if part == partition]
    some = some[at.rng.randrange(len(some)) :][:20]
    return Send(partition, tuple((name, replace(each, is_repeat=True)) for name, each in some))


_CODECS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")


def _by_client(at: _Writer) -> SendByClient:
    rng = at.rng
    at.clients += 1
    is_batched = rng.random() < 0.6
    options: dict[str, Any] = {"batching_enabled": is_batched}
    if is_batched:
        options |= {"batching_max_messages": rng.choice((2, 3, 100, 1000)), "batching_max_publish_delay_ms": 60_000}
        if rng.random() < 0.3 and not at.deduplicates:  # whose batches have sequence ids among each other
            options["batching_type"] = "KeyBased"
    elif rng.random() < 0.5:
        options["chunking_enabled"] = True
    options["compression_type"] = rng.choice(_CODECS)
    count = rng.choice((1, 5, 30, 120))
    messages = [any_message(rng, at.taste, _mark(at)) for _ in range(count)]
    return SendByClient(
        rng.randrange(at.parts), f"client-{at.clients}", tuple(messages), options, rng.random() < 0.15 and not at.deduplicates
    )
