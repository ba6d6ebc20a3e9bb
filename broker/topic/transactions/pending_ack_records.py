"""The entries of a subscription's pending-ack log, as Apache's MLPendingAckStore writes them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from google.protobuf.message import DecodeError

from wire.generated.transaction_pending_ack_pb2 import (
    ABORT,
    ACK,
    COMMIT,
    CUMULATIVE,
    INDIVIDUAL,
    PendingAckMetadata,
    PendingAckMetadataEntry,
)
from wire.int64 import signed, unsigned
from wire.payloads import MAGIC_BROKER_ENTRY_METADATA
from wire.position import Position
from wire.run import Buffer
from wire.transactions import TxnAction, TxnId

from .pending_acks import Acked


class UnreadableRecord(Exception):
    """An entry that is none of a pending-ack log."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A transaction acknowledges these; a cumulative one is of one message."""

    txn_id: TxnId
    is_cumulative: bool
    acked: tuple[Acked, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A transaction was decided."""

    txn_id: TxnId
    action: TxnAction
    is_cumulative: bool = False


Record: TypeAlias = Acknowledged | Ended


def encode(record: Record) -> bytes:
    """An entry."""
    entry = PendingAckMetadataEntry(
        ack_type=CUMULATIVE if record.is_cumulative else INDIVIDUAL,
        txnid_most_bits=record.txn_id.most,
        txnid_least_bits=record.txn_id.least,
    )
    if isinstance(record, Acknowledged):
        entry.pending_ack_op = ACK
        entry.pending_ack_metadata.extend(_metadata(record.acked))
    else:
        entry.pending_ack_op = COMMIT if record.action is TxnAction.COMMIT else ABORT
    return entry.SerializeToString()


def _metadata(acked: Sequence[Acked]) -> list[PendingAckMetadata]:
    return [
        PendingAckMetadata(
            ledgerId=each.position.ledger_id,
            entryId=each.position.entry_id,
            ack_set=[signed(unsigned(word)) for word in each.ack_set],
            batch_size=each.batch_size,
        )
        for each in acked
    ]


def decode(payload: Buffer) -> Record:
    """The record of an entry. UnreadableRecord."""
    try:
        entry = PendingAckMetadataEntry.FromString(bytes(_without_broker_metadata(payload)))
    except DecodeError as error:
        raise UnreadableRecord("no entry of a pending-ack log") from error
    txn_id = TxnId(entry.txnid_most_bits, entry.txnid_least_bits)
    is_cumulative = entry.ack_type == CUMULATIVE
    if entry.pending_ack_op != ACK:
        return Ended(txn_id, TxnAction.COMMIT if entry.pending_ack_op == COMMIT else TxnAction.ABORT, is_cumulative)
    acked = (
        Acked(Position(each.ledgerId, each.entryId), tuple(unsigned(word) for word in each.ack_set), max(0, each.batch_size))
        for each in entry.pending_ack_metadata
    )
    return Acknowledged(txn_id, is_cumulative, tuple(acked))


def _without_broker_metadata(payload: Buffer) -> memoryview:
    """An entry of a log of our own, which has the broker's metadata in front where topics have them."""
    data = memoryview(payload)
    if data[:2] == MAGIC_BROKER_ENTRY_METADATA:
        return data[6 + int.from_bytes(data[2:6]) :]
    return data
