"""Records as the bytes of log entries, which Apache's coordinators write and read (MLTransactionLogImpl). Pure.

One record is one entry. Entries with several (transactionLogBatchedWriteEnabled in Apache's) are read as well.
"""

from google.protobuf.message import DecodeError

from wire.generated.transaction_log_pb2 import (
    BatchedTransactionMetadataEntry,
    LoggedSubscription,
    TransactionMetadataEntry,
)

from .records import Opened, PartitionsAdded, Record, StatusChanged, SubscriptionsAdded, TxnStatus, TxnSubscription

_BATCH_MAGIC = b"\x0e\x01"
"""TxnLogBufferedWriter.BATCHED_ENTRY_DATA_PREFIX_MAGIC_NUMBER; two bytes of version follow."""
_BATCH_HEADER_BYTES = 4


class MalformedEntry(Exception):
    """Entry of the log that is none of Apache's."""


def encode(coordinator_id: int, record: Record, last_sequence: int, now_ms: int) -> bytes:
    """`last_sequence`: the highest sequence number given so far, by which ids are never given twice."""
    entry = TransactionMetadataEntry(txnid_most_bits=coordinator_id, txnid_least_bits=record.least)
    entry.max_local_txn_id, entry.last_modification_time = last_sequence, now_ms
    match record:
        case Opened():
            entry.metadata_op = TransactionMetadataEntry.NEW
            entry.start_time, entry.timeout_ms = record.start_ms, record.timeout_ms
            if record.owner is not None:
                entry.owner = record.owner
        case PartitionsAdded():
            entry.metadata_op = TransactionMetadataEntry.ADD_PARTITION
            entry.partitions.extend(record.partitions)
        case SubscriptionsAdded():
            entry.metadata_op = TransactionMetadataEntry.ADD_SUBSCRIPTION
            entry.subscriptions.extend(LoggedSubscription(topic=t, subscription=s) for t, s in record.subscriptions)
        case StatusChanged():
            change = TransactionMetadataEntry(expected_status=record.expected.name, new_status=record.new.name)
            change.metadata_op = TransactionMetadataEntry.UPDATE
            change.partitions.extend(record.partitions)
            change.subscriptions.extend(LoggedSubscription(topic=t, subscription=s) for t, s in record.subscriptions)
            entry.MergeFrom(change)
    return entry.SerializeToString()


def decode(payload: memoryview) -> list[tuple[Record, int]]:
    """The records of an entry, each with the highest sequence number given at that time. MalformedEntry."""
    try:
        if bytes(payload[:2]) == _BATCH_MAGIC:
            batch = BatchedTransactionMetadataEntry.FromString(bytes(payload[_BATCH_HEADER_BYTES:]))
            return [_decoded(entry) for entry in batch.transaction_log]
        return [_decoded(TransactionMetadataEntry.FromString(bytes(payload)))]
    except DecodeError as error:
        raise MalformedEntry(str(error)) from error


def _decoded(entry: TransactionMetadataEntry) -> tuple[Record, int]:
    if not entry.HasField("metadata_op"):
        raise MalformedEntry("an entry without an operation")
    return _record(entry), max(entry.max_local_txn_id, entry.txnid_least_bits)


def _record(entry: TransactionMetadataEntry) -> Record:
    least = entry.txnid_least_bits
    match entry.metadata_op:
        case TransactionMetadataEntry.NEW:
            owner = entry.owner if entry.HasField("owner") else None
            return Opened(least, entry.start_time, entry.timeout_ms, owner)
        case TransactionMetadataEntry.ADD_PARTITION:
            return PartitionsAdded(least, tuple(entry.partitions))
        case TransactionMetadataEntry.ADD_SUBSCRIPTION:
            return SubscriptionsAdded(least, _subscriptions(entry))
        case _:
            expected, new = TxnStatus(entry.expected_status), TxnStatus(entry.new_status)
            return StatusChanged(least, expected, new, tuple(entry.partitions), _subscriptions(entry))


def _subscriptions(entry: TransactionMetadataEntry) -> tuple[TxnSubscription, ...]:
    return tuple(TxnSubscription(each.topic, each.subscription) for each in entry.subscriptions)
