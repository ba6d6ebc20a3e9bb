"""The two phases over entries: `Newest` notes which message of each key is the newest, `Kept` picks what stays. Pure.

Both get the same entries in the same order, in portions. Entries that a kernel can decide cost no statement each; compressed
batches and parts of messages in chunks are looked into one by one. (Apache: PublishingOrderCompactor, RawBatchConverter.)

Where we differ: a batch that is encrypted always stays whole (Apache takes it for one message of its first message's key, or
drops it when there is none); of a message in chunks all parts stay or go (Apache keeps the last part alone).
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from wire.compression import compress, decompress
from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.kernels.compacted_entries import pack
from wire.kernels.compaction import CHUNK, DECOMPRESS, DROP, KEEP, REWRITE, choose, messages_in, note_batch, note_run, rebatch
from wire.payloads import MAGIC_BROKER_ENTRY_METADATA, PayloadSection, message_metadata, payload_section, split_section
from wire.run import EntryBatch, EntryRun

from .keys import KeyTable

_ENTRY_BITS = 28
_LEDGERS_MAX = 1 << 16
_BATCH_BITS = 20


@dataclass(frozen=True, slots=True)
class Portion:
    """Entries of one ledger of the topic's log, in its order. `skipped` has a byte for each: not 0, and it is left out."""

    run: EntryRun
    skipped: bytes

    @staticmethod
    def whole(run: EntryRun) -> "Portion":
        return Portion(run, bytes(run.count))


class Numbers:
    """Gives each entry of a topic a number that grows with its place in the order in which ledgers are met."""

    def __init__(self) -> None:
        self._ledgers: dict[int, int] = {}

    def first_of(self, run: EntryRun) -> int:
        """The first entry's; the others follow. ValueError beyond 65,536 ledgers, or 268 million entries of one."""
        ordinal = self._ledgers.setdefault(run.ledger_id, len(self._ledgers) + 1)  # a mark is never 0
        if ordinal >= _LEDGERS_MAX or run.last_entry_id >> _ENTRY_BITS:
            raise ValueError(f"{run.ledger_id}:{run.last_entry_id} is beyond what one compaction can count")
        return ordinal << _ENTRY_BITS | run.first_entry_id


@dataclass(slots=True)
class _Chunked:
    """A message in chunks whose last part was seen; an object each, as each is larger than an entry may be."""

    key: bytes | None
    mark: int


@dataclass(slots=True)
class Newest:
    """Phase one, and its result for phase two. `table` is the memory it takes."""

    table: KeyTable
    retains_null_key: bool
    numbers: Numbers = field(default_factory=Numbers)
    _chunked: dict[str, _Chunked] = field(default_factory=dict)

    def note(self, portion: Portion) -> None:
        run, table = portion.run, self.table
        table.reserve(messages_in(run))
        first, index = self.numbers.first_of(run), 0
        while True:
            index = note_run(run, index, portion.skipped, table.slots, table.counts, first, self.retains_null_key)
            if index == run.count:
                return
            self._look_into(run, index, first + index)
            index += 1

    def _look_into(self, run: EntryRun, index: int, number: int) -> None:
        try:
            section = split_section(run.payload(run.first_entry_id + index))
            metadata = message_metadata(section)
            if metadata.num_chunks_from_msg > 1:
                self._note_chunk(metadata, number)
                return
            payload = decompress(metadata.compression, section.payload, metadata.uncompressed_size)
        except MalformedPayload:
            return  # it stays whole: see `Kept`
        table, count = self.table, metadata.num_messages_in_batch
        table.reserve(min(count, len(payload) // 4))
        note_batch(payload, count, table.slots, table.counts, number, self.retains_null_key)

    def _note_chunk(self, metadata: MessageMetadata, number: int) -> None:
        if metadata.chunk_id + 1 < metadata.num_chunks_from_msg:
            return
        key = metadata.partition_key.encode() if metadata.HasField("partition_key") else None
        mark = number << _BATCH_BITS
        self._chunked[metadata.uuid] = _Chunked(key, mark)
        if key is not None:
            self.table.note(key, mark)

    def keeps_chunk(self, metadata: MessageMetadata) -> bool:
        """A message whose last part has not come yet stays: its end is not known yet."""
        whole = self._chunked.get(metadata.uuid)
        if whole is None:
            return True
        return self.retains_null_key if whole.key is None else self.table.newest(whole.key) == whole.mark


class Kept:
    """Phase two."""

    def __init__(self, newest: Newest, partition: int, header_bytes: int) -> None:
        self._newest = newest
        self._partition = partition
        self._header_bytes = header_bytes

    def of(self, portion: Portion) -> EntryBatch:
        """The portion's kept messages as entries of a compacted ledger; may be empty."""
        newest, run = self._newest, portion.run
        first = newest.numbers.first_of(run)
        verdicts = choose(run, portion.skipped, newest.table.slots, first, newest.retains_null_key)
        rewritten: dict[int, bytes] = {}
        for index in _to_be_looked_into(verdicts):
            verdicts[index] = self._decided(run, index, first + index, rewritten)
        return pack(run, verdicts, rewritten, self._partition, self._header_bytes)

    def _decided(self, run: EntryRun, index: int, number: int, rewritten: dict[int, bytes]) -> int:
        try:
            whole = run.payload(run.first_entry_id + index)
            section = split_section(whole)
            metadata = message_metadata(section)
            if metadata.num_chunks_from_msg > 1:
                return KEEP if self._newest.keeps_chunk(metadata) else DROP
            payload = decompress(metadata.compression, section.payload, metadata.uncompressed_size)
        except MalformedPayload:
            return KEEP
        count, newest = metadata.num_messages_in_batch, self._newest
        kept, fresh = rebatch(payload, count, newest.table.slots, number, newest.retains_null_key)
        if kept in (-1, count):
            return KEEP
        if not kept:
            return DROP
        rewritten[index] = _section(section, metadata, fresh)
        return REWRITE


def _to_be_looked_into(verdicts: "array[int]") -> Iterator[int]:
    """Ascending within each verdict; without a statement for those that are decided."""
    octets = verdicts.tobytes()
    for verdict in (REWRITE, DECOMPRESS, CHUNK):
        index = octets.find(verdict)
        while index >= 0:
            yield index
            index = octets.find(verdict, index + 1)


def _section(old: PayloadSection, metadata: MessageMetadata, payload: bytearray) -> bytes:
    metadata.uncompressed_size = len(payload)
    fresh = payload_section(metadata, compress(metadata.compression, payload))
    if old.broker_entry_metadata is None:
        return fresh
    stamp = old.broker_entry_metadata
    return b"".join((MAGIC_BROKER_ENTRY_METADATA, len(stamp).to_bytes(4), stamp, fresh))
