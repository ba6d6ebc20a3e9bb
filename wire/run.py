"""Runs: contiguous sequences of entries in one shared buffer with an offset array, never a list of objects.

An entry as bookies store it is `header | digest | payload` (BookKeeper's layout: ledger id, entry id, last add confirmed
and ledger length, eight bytes each, big-endian, then the digest). A payload is what a client sent, byte for byte.
`EntryBatch` is a run that has no ids yet: its headers are blank room. Sealing fills the room in place and makes an `EntryRun`.
"""

from array import array
from collections.abc import Sequence
from typing import TypeAlias

from wire.record import record
from wire.transactions import TxnId

Buffer: TypeAlias = bytes | bytearray | memoryview

WIRE_HEADER_BYTES = 32
"""Known size of the header of an entry whose ledger's digest is not known: four numbers. The digest counts as payload."""
HEADER_BYTES_CRC32C = 36
"""Size of header and digest for the CRC32C digest: 32 + 4."""

FLAG_MARKER = 1
"""MessageMetadata.marker_type is set (or SEND.marker): never delivered to clients."""
FLAG_CHUNK = 2
FLAG_ENCRYPTED = 4
FLAG_DELAYED = 8
"""MessageMetadata.deliver_at_time is set."""
FLAG_TRANSACTION = 16
FLAG_BATCH = 32
"""MessageMetadata.num_messages_in_batch is present (also when it is 1)."""
FLAG_UNPARSEABLE = 64
"""The payload does not hold a readable MessageMetadata; counted as one message and delivered as it is."""


@record(frozen=True, slots=True)
class EntryBatch:
    """Entries before they have ids.

    `offsets` has typecode "I" and count + 1 elements: entry i is `buffer[offsets[i]:offsets[i + 1]]`, of which the first
    `header_bytes` are blank. The batch belongs to its last holder: appending it to a ledger hands the buffer over.
    """

    buffer: bytearray
    offsets: "array[int]"
    header_bytes: int
    message_count: int

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def payload_bytes(self) -> int:
        offsets = self.offsets
        return offsets[-1] - offsets[0] - (len(offsets) - 1) * self.header_bytes


def batch_of(payloads: Sequence[bytes], header_bytes: int = HEADER_BYTES_CRC32C) -> EntryBatch:
    """Entries of these payloads, each a message, with room for their headers. Copies."""
    room, buffer, offsets = bytes(header_bytes), bytearray(), array("I", (0,))
    for payload in payloads:
        buffer += room
        buffer += payload
        offsets.append(len(buffer))
    return EntryBatch(buffer, offsets, header_bytes, len(payloads))


@record(frozen=True, slots=True)
class EntryRun:
    """Sealed, consecutive entries of one ledger. Immutable and shared: cache, memtable and readers hold the same buffer.

    `offsets` are absolute in `buffer` and need not start at 0, so that a slice shares its buffer with the whole.
    """

    ledger_id: int
    first_entry_id: int
    buffer: Buffer
    offsets: "array[int]"
    header_bytes: int = HEADER_BYTES_CRC32C
    is_passing: bool = False
    """Kept nowhere (a non-persistent topic's): to clients each of its entries is 0:0, whatever the ids here say."""

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def last_entry_id(self) -> int:
        return self.first_entry_id + len(self.offsets) - 2

    @property
    def size_bytes(self) -> int:
        """Bytes of the sealed entries, headers included."""
        return self.offsets[-1] - self.offsets[0]

    @property
    def payload_bytes(self) -> int:
        offsets = self.offsets
        return offsets[-1] - offsets[0] - (len(offsets) - 1) * self.header_bytes

    def entries(self, first_entry_id: int, count: int) -> "EntryRun":
        """The sub-run of `count` entries from `first_entry_id`; shares the buffer."""
        start = first_entry_id - self.first_entry_id
        if start < 0 or count < 1 or start + count > self.count:
            raise ValueError(f"entries {first_entry_id}+{count} are not in {self.first_entry_id}..{self.last_entry_id}")
        if count == self.count:
            return self
        offsets = self.offsets[start : start + count + 1]
        return EntryRun(self.ledger_id, first_entry_id, self.buffer, offsets, self.header_bytes, self.is_passing)

    @property
    def first_entry(self) -> memoryview:
        """Sealed bytes of the first entry, header included."""
        return memoryview(self.buffer)[self.offsets[0] : self.offsets[1]]

    def payload(self, entry_id: int) -> memoryview:
        """The bytes the client sent for one entry."""
        index = entry_id - self.first_entry_id
        return memoryview(self.buffer)[self.offsets[index] + self.header_bytes : self.offsets[index + 1]]


@record(frozen=True, slots=True)
class EntryMix:
    """Sealed entries of any ledgers in the order in which they came; ledger and entry id are in the header of each.

    `offsets` ("I", count + 1 elements) begin with 0 and end with the length of `buffer`. `header_bytes` is what the header of
    each takes at least, with its digest where that is known. Immutable, as an `EntryRun`.
    """

    buffer: bytes | bytearray
    offsets: "array[int]"
    header_bytes: int = WIRE_HEADER_BYTES

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def size_bytes(self) -> int:
        return self.offsets[-1]

    @property
    def ledger_id(self) -> int:
        """Ledger id of the first entry."""
        return int.from_bytes(self.buffer[:8], signed=True)


@record(frozen=True, slots=True)
class SendRun:
    """Consecutive plain SEND frames of one producer, as taken from one socket read (`wire.kernels.sends.take_sends`).

    `entries` owns a copy of the payloads. The arrays have one element per entry: "Q" for the ids, "I" for counts.
    `highest_sequence_ids[i]` is 0 where the command had none. `flags` is the OR over the entries (FLAG_MARKER, FLAG_CHUNK).
    `end` is the position in the read buffer after the last taken frame. `bad_checksum_index` is the index of the first entry
    whose CRC32C does not match, or -1; a run ends before such an entry unless it is its first one.
    """

    producer_id: int
    entries: EntryBatch
    sequence_ids: "array[int]"
    highest_sequence_ids: "array[int]"
    flags: int
    end: int
    bad_checksum_index: int = -1
    txn_id: TxnId | None = None
    """The transaction that all of it belongs to; the kernel takes none of those."""


@record(frozen=True, slots=True)
class SendMix:
    """Consecutive plain SEND frames of any producers, as taken from one socket read (`wire.kernels.sends.take_mix`).

    The entries are in one buffer, as an `EntryBatch` has them. A part is what came of one producer in a row: part p has the
    entries [starts[p], starts[p + 1]), and its first frame begins in the read buffer at frames[p]; frames[-1] is where the
    last frame ends. Arrays by part: `producer_ids` and `frames` "Q", `message_counts` and `starts` "I", `flags` "B" (the OR,
    as in `SendRun`). Arrays by entry: `sequence_ids` and `highest_sequence_ids` "Q".
    """

    buffer: bytearray
    offsets: "array[int]"
    header_bytes: int
    producer_ids: "array[int]"
    starts: "array[int]"
    message_counts: "array[int]"
    flags: "array[int]"
    frames: "array[int]"
    sequence_ids: "array[int]"
    highest_sequence_ids: "array[int]"

    def part_bytes(self, part: int) -> int:
        """Payload bytes of one part."""
        first, last = self.starts[part], self.starts[part + 1]
        return self.offsets[last] - self.offsets[first] - (last - first) * self.header_bytes

    def run(self, part: int) -> SendRun:
        """One part, its own or a copy; its `end` is that of the part."""
        first, last = self.starts[part], self.starts[part + 1]
        if last - first == len(self.sequence_ids):
            entries = EntryBatch(self.buffer, self.offsets, self.header_bytes, self.message_counts[part])
            ids, highest = self.sequence_ids, self.highest_sequence_ids
            return SendRun(self.producer_ids[part], entries, ids, highest, self.flags[part], self.frames[part + 1])
        offsets = self.offsets[first : last + 1]
        at = offsets[0]
        entries = EntryBatch(
            self.buffer[at : offsets[-1]],
            array("I", [offset - at for offset in offsets]),
            self.header_bytes,
            self.message_counts[part],
        )
        ids, highest = self.sequence_ids[first:last], self.highest_sequence_ids[first:last]
        return SendRun(self.producer_ids[part], entries, ids, highest, self.flags[part], self.frames[part + 1])


@record(frozen=True, slots=True)
class AckRun:
    """Consecutive plain individual ACK commands of one consumer: no request id, transaction, properties or ack sets.

    `ledger_ids` and `entry_ids` are "Q" arrays of equal length. `end` as in `SendRun`.
    """

    consumer_id: int
    ledger_ids: "array[int]"
    entry_ids: "array[int]"
    end: int


@record(frozen=True, slots=True)
class AckMix:
    """Consecutive plain individual ACK commands of one entry each, none of the same consumer as the one before it.

    "Q" arrays of equal length, with one element per command. `end` as in `SendRun`.
    """

    consumer_ids: "array[int]"
    ledger_ids: "array[int]"
    entry_ids: "array[int]"
    end: int


@record(frozen=True, slots=True)
class RunMetadata:
    """Facts of each entry's MessageMetadata that a dispatcher needs (`wire.kernels.metadata.scan`).

    `message_counts` ("I") is num_messages_in_batch, or 1; `flags` ("B") holds FLAG_*; `any_flags` is their OR.
    """

    message_counts: "array[int]"
    flags: "array[int]"
    any_flags: int
    message_count: int
