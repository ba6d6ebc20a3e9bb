"""Redrive of dead letters to their topics. A letter is acknowledged when its copy is stored, and not before.

A copy's sequence id is the letter's place (`source_positions`), under a name made of the job's, the filter and the ledger: a
run that died between the copy and the acknowledgement is run again, and brokers that deduplicate drop the copy that they have.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy
import pyarrow

from ...decode.octets import Places, Words
from ...errors import PipelineError
from ...names import full_name
from ...options import Between, SourceOptions
from ...partly import Parts
from ...positions import LedgerRange, Place
from ...sink.frame_rows import outgoing
from ...sink.options import DEDUPLICATION, SinkOptions
from ...sink.topics import check_deduplicates, partition_count
from ...sink.values.value_column import value_encoder
from ..copies.ledger_copy import LedgerCopy, newest_known, producer_name
from ..copies.schema_copies import SchemaCopies
from ..copies.source_positions import entries_of, sequence_ids
from ..copies.topic_spans import batches_of_range
from .held_letters import HeldLetters, left
from .letter_causes import CLIENTS_OWN, COLUMNS, REAL_TOPIC, Letter, is_between, letters_of
from .letter_filter import Filter

REDRIVEN_FROM = "REDRIVEN_FROM"
"""A property of the copy: which letter it is of."""


@dataclass(frozen=True, slots=True)
class Redrive:
    """`to` "": each to its own topic. `cause_property` as `cause_of` has it."""

    name: str
    subscription: str
    wanted: Filter
    to: str
    cause_property: str
    source: SourceOptions
    target: SinkOptions

    @property
    def producer(self) -> str:
        """Name with a digest of the filter: another filter may choose earlier letters, and needs sequence ids of its own.

        Otherwise they would be taken for repeats, acknowledged, and lost. An option that is not given does not change the name.
        """
        more = [f"cause {self.cause_property}"] if self.cause_property else []
        more += [str(self.source.between)] if self.source.between != Between() else []
        return f"{self.name}-{self.wanted.digest(self.to, *more)}"


@dataclass(slots=True)
class Redriven:
    """Outcome for the letters of one topic: `sent` and `repeated` by their target."""

    looked_at: int = 0
    sent: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    acknowledged_entries: int = 0
    entries: int = 0
    """Entries looked at."""


def target_of(letter: Letter, to: str) -> str:
    """Full name of `to`, or of the topic that the letter came from. PipelineError where neither is known."""
    if not to and not letter.topic:
        raise PipelineError(f"{letter.place}: there is no property {REAL_TOPIC}, so that nobody knows where it came from: --to")
    return full_name(to or letter.topic)


def redriven(topic: str, how: Redrive, done: Redriven) -> Iterator[None]:
    """One topic or partition. It yields now and then, when what it did is in `done`. The errors of source and sink."""
    with HeldLetters(topic, how.subscription, how.source) as held:
        found = left(topic, how.subscription, how.source)
        for ledger_id, these in groupby(found.ranges, key=lambda each: each.ledger_id):
            with _LedgerRedrive(topic, ledger_id, how, held, done) as ledger:
                for each in these:
                    yield from ledger.run(each, found.parts)


class _LedgerRedrive:
    """The letters of one ledger, and a copy on its way to each of their topics."""

    def __init__(self, topic: str, ledger_id: int, how: Redrive, held: HeldLetters, done: Redriven) -> None:
        self._topic, self._ledger_id, self._how, self._held, self._done = topic, ledger_id, how, held, done
        self._schemas = SchemaCopies(topic, how.source.access)
        self._copies: dict[str, LedgerCopy] = {}
        self._open = ExitStack()
        self._last = -1

    def __enter__(self) -> "_LedgerRedrive":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def run(self, wanted: LedgerRange, parts: Parts) -> Iterator[None]:
        # all that is left of a batch has to be seen, for an entry of which a part is not meant is not acknowledged
        every = replace(self._how.source, between=Between())
        for batch in batches_of_range(self._topic, wanted, every, (*COLUMNS, "index"), parts):
            ids = sequence_ids(batch, self._topic, self._last)
            self._last = int(ids[-1])
            letters = list(letters_of(batch, self._topic, self._how.cause_property))
            inside = is_between(batch, self._how.source.between).tolist()
            meant = [is_in and self._how.wanted.holds(each) for is_in, each in zip(inside, letters, strict=True)]
            targets = [target_of(each, self._how.to) if is_it else "" for is_it, each in zip(meant, letters, strict=True)]
            self._send(batch, ids, letters, targets)
            for each in self._copies.values():
                each.flush()
            self._acknowledge(batch, targets)
            self._done.looked_at += sum(inside)
            self._done.entries += len(numpy.unique(entries_of(ids)))
            yield

    def _send(self, batch: Any, ids: Words, letters: list[Letter], targets: list[str]) -> None:
        batch = batch.set_column(batch.schema.get_field_index("properties"), "properties", _properties(letters))
        versions = numpy.asarray(batch.column("schema_version").fill_null(-1)).tolist()
        for target in dict.fromkeys(each for each in targets if each):
            copy = self._copy(target)
            before = copy.repeated
            rows = [row for row, each in enumerate(targets) if each == target]
            for version, same in groupby(rows, key=lambda row: versions[row]):
                chosen = numpy.array(list(same), numpy.int64)
                copy.send(_outgoing(batch, chosen, ids), self._schemas.of_version(version))
            repeated = copy.repeated - before
            self._done.repeated += repeated
            self._done.sent[target] = self._done.sent.get(target, 0) + len(rows) - repeated

    def _copy(self, target: str) -> LedgerCopy:
        if target not in self._copies:
            how = self._how
            count = partition_count(target, how.target.access, how.target.creates_topic)
            partitions = tuple(f"{target}-partition-{index}" for index in range(count)) or (target,)
            name = producer_name(how.producer, self._topic, self._ledger_id)
            newest_known([name], partitions, how.target.access)  # with that they are loaded, and can be looked at
            for each in partitions if how.target.guarantee == DEDUPLICATION else ():
                check_deduplicates(each, how.target.access)
            copy = LedgerCopy(how.producer, self._topic, self._ledger_id, partitions, how.target)
            self._copies[target] = self._open.enter_context(copy)
        return self._copies[target]

    def _acknowledge(self, batch: Any, targets: list[str]) -> None:
        """Entries all of whose letters that were left were wanted: of a part of a batch no note is made."""
        entries = [each["entry_id"] for each in batch.column("message_id").to_pylist()]
        kept = {entry for entry, target in zip(entries, targets, strict=True) if not target}
        done = [Place(self._ledger_id, entry) for entry in dict.fromkeys(entries) if entry not in kept]
        if done:
            self._held.acknowledge(done)
            self._done.acknowledged_entries += len(done)


def _outgoing(batch: Any, chosen: Places, ids: Words) -> Any:
    part = batch.take(pyarrow.array(chosen))
    return outgoing(part, value_encoder("NONE", part.schema.field("value").type), ids[chosen])


def _properties(letters: list[Letter]) -> Any:
    """The application's own, and which letter it was."""
    found = []
    for each in letters:
        own = {name: value for name, value in each.properties.items() if name not in CLIENTS_OWN}
        found.append(list({**own, REDRIVEN_FROM: each.place}.items()))
    return pyarrow.array(found, pyarrow.map_(pyarrow.string(), pyarrow.string()))
