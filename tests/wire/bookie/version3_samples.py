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
