"""Requests of version 3 of the bookie protocol, and the operations that they ask for."""

from wire.bookie import version3
from wire.generated import bookie_protocol_pb2 as api


def request(operation: api.OperationType, **bodies: object) -> bytes:
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=operation, txnId=9)
    return api.Request(header=header, **bodies).SerializeToString()  # type: ignore[arg-type]


def operation_of(data: bytes) -> object:
    decoded = version3.decode(data)
    assert decoded is not None
    return decoded.operation


LAC_FENCE_READ = bytes.fromhex(
    "0a06080310011805a20626080710ffffffffffffffffff011a140000000000000000000000000000000000000000a00601"
)
"""Version 3, a fencing read of the last entry of ledger 7 with txnId 5 and a key of zeros."""
