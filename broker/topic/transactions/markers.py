"""Transactions in entries: which one a message belongs to, and the markers that end one. Pure.

A marker is an entry that no client sees, as Apache's Markers.newTxnMarker makes it.
"""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress

from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import message_metadata, payload_section, split_section
from wire.position import Position
from wire.run import FLAG_MARKER, FLAG_TRANSACTION, EntryBatch, EntryRun, RunMetadata, batch_of
from wire.transactions import TxnAction, TxnId

TXN_COMMIT = 21
TXN_ABORT = 22
_MARKER_TYPES = {TxnAction.COMMIT: TXN_COMMIT, TxnAction.ABORT: TXN_ABORT}
_ACTIONS = {number: action for action, number in _MARKER_TYPES.items()}
_PRODUCER_NAME = "pulsar.txn.marker"
_NO_SEQUENCE_ID = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class TransactionEntry:
    """An entry that names a transaction. `action`: of a marker, None for a message."""

    position: Position
    txn_id: TxnId
    action: TxnAction | None


def one_entry(payload: bytes, header_bytes: int) -> EntryBatch:
    """A batch of one entry."""
    return batch_of((payload,), header_bytes)


def marker(txn_id: TxnId, action: TxnAction, now_ms: int, header_bytes: int) -> EntryBatch:
    """Marker that the transaction has ended."""
    metadata = MessageMetadata(
        producer_name=_PRODUCER_NAME,
        sequence_id=_NO_SEQUENCE_ID,
        publish_time=now_ms,
        marker_type=_MARKER_TYPES[action],
        txnid_most_bits=txn_id.most,
        txnid_least_bits=txn_id.least,
    )
    return one_entry(payload_section(metadata, b""), header_bytes)


def transaction_of(metadata: MessageMetadata) -> TxnId | None:
    """Transaction of a message; both words of its id are needed."""
    if not (metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits")):
        return None
    return TxnId(metadata.txnid_most_bits, metadata.txnid_least_bits)


def transaction_entries(run: EntryRun, metadata: RunMetadata) -> Iterator[TransactionEntry]:
    """Yields the entries that name a transaction; costs nothing for a run without any."""
    if not metadata.any_flags & FLAG_TRANSACTION:
        return
    for entry_id in compress(range(run.first_entry_id, run.last_entry_id + 1), map(FLAG_TRANSACTION.__and__, metadata.flags)):
        found = _readable_metadata(run, entry_id)
        txn_id = None if found is None else transaction_of(found)
        if found is not None and txn_id is not None:
            yield TransactionEntry(Position(run.ledger_id, entry_id), txn_id, _ACTIONS.get(found.marker_type))


def _readable_metadata(run: EntryRun, entry_id: int) -> MessageMetadata | None:
    """None: it belongs to no transaction that we took, which are checked before; delivered as it is."""
    try:
        return message_metadata(split_section(run.payload(entry_id)))
    except MalformedPayload:
        return None


def without_aborted(run: EntryRun, metadata: RunMetadata, is_aborted: Callable[[TxnId], bool]) -> RunMetadata:
    """The same with messages of aborted transactions shown as markers: no consumer gets them, and they are acknowledged
    away.
    """
    flags = None
    for entry in transaction_entries(run, metadata):
        if entry.action is None and is_aborted(entry.txn_id):
            flags = flags or array("B", metadata.flags)
            flags[entry.position.entry_id - run.first_entry_id] |= FLAG_MARKER
    if flags is None:
        return metadata
    any_flags = metadata.any_flags | FLAG_MARKER
    return RunMetadata(metadata.message_counts, flags, any_flags, metadata.message_count)
