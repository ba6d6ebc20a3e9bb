"""The rows that a topic is to have, computed plainly from what was stored: an entry at a time, and no code of the pipeline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .messages import Kind, Row, Sent
from .peer import Place


@dataclass(frozen=True, slots=True)
class Stored:
    place: Place
    sent: Sent


@dataclass(slots=True)
class Part:
    """A partition, or a topic that has none. `ended`: of transactions whether they were committed."""

    topic: str
    stored: list[Stored] = field(default_factory=list)
    ended: dict[int, bool] = field(default_factory=dict)

    @property
    def first_open(self) -> Place | None:
        """The first entry of a transaction that did not end."""
        places = [each.place for each in self.stored if each.sent.txn is not None and each.sent.txn not in self.ended]
        return min(places, default=None)

    @property
    def has_transactions(self) -> bool:
        return any(each.sent.txn is not None for each in self.stored)


def rows_of(part: Part, ledgers: frozenset[int] | None = None) -> list[Row]:
    """Rows in the order of readers; those of `ledgers` alone, where others are gone.

    `index` is known where the broker wrote no entries of its own.
    """
    found: list[Row] = []
    open_chunks: dict[str, list[Sent]] = {}
    index = 0
    for each in sorted(part.stored, key=lambda each: each.place):
        sent = each.sent
        first, index = index, index + sent.count
        if ledgers is not None and each.place[0] not in ledgers:
            continue
        if sent.txn is not None and not part.ended.get(sent.txn, False):
            continue
        if sent.kind is Kind.CHUNK:
            made = _chunk_row(sent, open_chunks)
        elif sent.kind is Kind.ERROR:
            made = [{**row, "error": True} for row in sent.rows]
        else:
            made = [{**row, "error": False} for row in sent.rows]
        for row in made:
            at = row["batch_index"]
            row |= {"topic": part.topic, "message_id": (*each.place, at), "index": first + at if at >= 0 else index - 1}
            if part.has_transactions:
                del row["index"]
        found += made
    return found


def _chunk_row(sent: Sent, open_chunks: dict[str, list[Sent]]) -> list[Row]:
    """Chunk 0 begins, the next one goes on, one that was there is nothing, and a gap ends it; the last one is the row."""
    chunk = sent.chunk
    assert chunk is not None
    if chunk.number == 0:
        open_chunks[chunk.uuid] = []
    came = open_chunks.get(chunk.uuid)
    is_last = chunk.number == chunk.count - 1
    if came is not None and chunk.number < len(came):
        return []
    if came is not None and chunk.number == len(came):
        came.append(sent)
        if not is_last:
            return []
        return [{**row, "error": False} for row in sent.rows]
    open_chunks.pop(chunk.uuid, None)
    return [{**row, "value": chunk.payload, "error": True} for row in sent.rows] if is_last else []


def first_difference(expected: Iterable[Row], found: Iterable[Row], names: Iterable[str]) -> str | None:
    """First difference in the expected columns, by the number of the row."""
    one, other = list(expected), list(found)
    wanted = tuple(names)
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        for name in wanted:
            if name in mine and _plain(mine, name) != _plain(theirs, name):
                said = f"row {at}, {name}: expected {_short(mine[name])}, found {_short(theirs.get(name))}"
                return f"{said}\n  of {_at(mine)}\n  and {_at(theirs)}"
    if len(one) == len(other):
        return None
    at = min(len(one), len(other))
    which = f"missing is {_at(one[at])}" if len(one) > at else f"too many is {_at(other[at])}"
    return f"row {at}: expected {len(one)} rows, found {len(other)}; {which}"


def _plain(row: Mapping[str, object], name: str) -> object:
    value = row.get(name)
    return bool(value) if name == "error" else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}... ({len(text)})"


def _at(row: Row) -> str:
    return _short({name: row[name] for name in ("topic", "message_id", "key", "value", "error") if name in row})
