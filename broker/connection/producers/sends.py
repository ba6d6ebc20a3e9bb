"""SENDs that the kernel leaves: of a transaction, with a message id, oddly encoded, malformed, or too large. Pure.

The common case is `wire.kernels.sends`. A refusal here concerns one message; later messages are not touched.
"""

from array import array
from collections.abc import Iterator

from wire.errors import MalformedPayload
from wire.generated import pulsar_api_pb2 as api
from wire.kernels.entries import checksum
from wire.kernels.metadata import scan
from wire.payloads import PayloadSection, message_metadata, split_section
from wire.run import FLAG_CHUNK, FLAG_ENCRYPTED, FLAG_MARKER, EntryBatch, EntryRun, SendRun
from wire.transactions import TxnId

from ...errors import BrokerError, ServerError
from ...topic.transactions.markers import transaction_of

_MAGIC_CRC32C = b"\x0e\x01"
_MAGIC_BROKER_ENTRY_METADATA = b"\x0e\x02"
_MESSAGES_MAX = 1 << 20
_IS_PLAIN = bytes(not flags & FLAG_ENCRYPTED for flags in range(256))
"""Table by an entry's flags: 1 for an entry that is not encrypted."""


def single_send(command: api.CommandSend, payload: memoryview, header_bytes: int) -> SendRun:
    """A run of one, checked as the kernel checks. Copies the payload. BrokerError for messages that cannot be stored."""
    if command.HasField("message_id"):
        raise BrokerError(ServerError.NOT_ALLOWED, "Only a shadow topic takes messages with an id")
    if not 1 <= command.num_messages <= _MESSAGES_MAX:
        raise BrokerError(ServerError.NOT_ALLOWED, f"Invalid number of messages: {command.num_messages}")
    _check_payload(payload)
    txn_id = _transaction(command)
    if txn_id is not None:
        payload = _naming(txn_id, payload)
    buffer = bytearray(header_bytes) + payload
    batch = EntryBatch(buffer, array("I", (0, len(buffer))), header_bytes, command.num_messages)
    flags = (FLAG_CHUNK if command.is_chunk else 0) | (FLAG_MARKER if command.marker else 0)
    sequence_ids, highest = array("Q", (command.sequence_id,)), array("Q", (command.highest_sequence_id,))
    return SendRun(command.producer_id, batch, sequence_ids, highest, flags, 0, txn_id=txn_id)


def _transaction(command: api.CommandSend) -> TxnId | None:
    if not (command.HasField("txnid_most_bits") and command.HasField("txnid_least_bits")):
        return None
    return TxnId(command.txnid_most_bits, command.txnid_least_bits)


def _naming(txn_id: TxnId, payload: memoryview) -> memoryview:
    """The message has its transaction too: the stored metadata, which readers use. Apache's client for Go has it in the command
    alone; here it is added.
    """
    try:
        section = split_section(payload)
        said = transaction_of(message_metadata(section))
    except MalformedPayload as error:
        raise BrokerError(ServerError.NOT_ALLOWED, f"A message of transaction {txn_id} cannot be read: {error}") from error
    if said is None:
        return memoryview(_with_transaction(section, txn_id))
    if said != txn_id:
        raise BrokerError(ServerError.NOT_ALLOWED, f"The metadata of a message of transaction {txn_id} names {said}")
    return payload


def _with_transaction(section: PayloadSection, txn_id: TxnId) -> bytes:
    """Fields that follow an encoded message are read as if they had been in it."""
    named = api.MessageMetadata(txnid_most_bits=txn_id.most, txnid_least_bits=txn_id.least).SerializePartialToString()
    metadata = bytes(section.metadata) + named
    checked = b"".join((len(metadata).to_bytes(4), metadata, section.payload))
    return checked if section.checksum is None else b"".join((_MAGIC_CRC32C, checksum(checked).to_bytes(4), checked))


def _check_payload(payload: memoryview) -> None:
    magic = bytes(payload[:2])
    if magic == _MAGIC_BROKER_ENTRY_METADATA:
        raise BrokerError(ServerError.NOT_ALLOWED, "Broker entry metadata is not for clients to send")
    if magic != _MAGIC_CRC32C:
        if len(payload) < 4:
            raise BrokerError(ServerError.NOT_ALLOWED, f"A payload section of {len(payload)} bytes is too short")
        return
    if len(payload) < 10:
        raise BrokerError(ServerError.NOT_ALLOWED, f"A payload section of {len(payload)} bytes is too short")
    if checksum(payload[6:]) != int.from_bytes(payload[2:6]):
        raise BrokerError(ServerError.CHECKSUM, "Checksum failed on the broker")


def message_bytes(entries: EntryBatch, index: int) -> int:
    """Size of the message in an entry, command and metadata apart: the size that clients compare with max_message_size."""
    start, end = entries.offsets[index] + entries.header_bytes, entries.offsets[index + 1]
    if entries.buffer[start : start + 2] == _MAGIC_CRC32C:
        start += 6
    metadata_bytes = int.from_bytes(entries.buffer[start : start + 4])
    return max(0, end - start - 4 - min(metadata_bytes, end - start - 4))


def is_any_larger(entries: EntryBatch, bytes_max: int) -> bool:
    """Whether a message is larger than allowed."""
    return any(message_bytes(entries, index) > bytes_max for index in range(entries.count))


def is_any_plain(entries: EntryBatch) -> bool:
    """Whether a message names no encryption keys, or cannot be read."""
    read = scan(EntryRun(-1, -1, entries.buffer, entries.offsets, entries.header_bytes))
    return 1 in read.flags.tobytes().translate(_IS_PLAIN)


def one_by_one(run: SendRun) -> Iterator[SendRun]:
    """The same as runs of one. Copies, and takes the message count of each as one: for a run in which one is too large."""
    entries = run.entries
    for index in range(entries.count):
        buffer = entries.buffer[entries.offsets[index] : entries.offsets[index + 1]]
        batch = EntryBatch(buffer, array("I", (0, len(buffer))), entries.header_bytes, 1)
        sequence_ids, highest = run.sequence_ids[index : index + 1], run.highest_sequence_ids[index : index + 1]
        yield SendRun(run.producer_id, batch, sequence_ids, highest, run.flags, run.end, txn_id=run.txn_id)
