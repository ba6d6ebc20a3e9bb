"""The kernels cost steps linear in the bytes that a peer sent: counted in their plain form, which is compiled as it stands."""

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.connection.peer import ack, message, send
from tests.cost import assert_linear
from tests.wire.bookie.bookie_samples import add, read
from tests.wire.both_kernels import plain
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.kernels.columns import COLUMNS
from wire.payloads import payload_section
from wire.run import EntryRun

FRAME_MAX = 5 << 20
HEADER = 36


def _messages(n: int, properties: int) -> EntryRun:
    """Stored entries with keys and properties."""
    buffer, offsets = bytearray(), array("I", [0])
    for number in range(n):
        metadata = api.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1, partition_key=f"k{number}")
        for each in range(properties):
            metadata.properties.add(key=f"k{each}", value="v")
        buffer += bytes(HEADER) + payload_section(metadata, b"body")
        offsets.append(len(buffer))
    return EntryRun(1, 0, buffer, offsets, HEADER)


def _sends(n: int) -> Callable[[], Any]:
    data = b"".join([encode(send(1, number), message()) for number in range(n)])
    kernel = plain("sends")
    return lambda: kernel.take_sends(data, 0, len(data), HEADER, 1 << 16, FRAME_MAX)


def _acks(n: int) -> Callable[[], Any]:
    data = b"".join([encode(ack(1, (number, 1))) for number in range(n)])
    kernel = plain("acks")
    return lambda: kernel.take_acks(data, 0, len(data))


def _ack_mix(n: int) -> Callable[[], Any]:
    data = b"".join([encode(ack(number % 2, (number, 1))) for number in range(n)])
    kernel = plain("acks")
    return lambda: kernel.take_ack_mix(data, 0, len(data), n)


def _ack_of_many(n: int) -> Callable[[], Any]:
    data = encode(ack(1, *[(number, 1) for number in range(n)]))
    kernel = plain("acks")
    return lambda: kernel.take_acks(data, 0, len(data))


def _adds(n: int) -> Callable[[], Any]:
    data = b"".join([add(7, number) for number in range(n)])
    kernel = plain("bookie_requests")
    return lambda: kernel.take_adds(data, 0, len(data), 1 << 16, FRAME_MAX)


def _reads(n: int) -> Callable[[], Any]:
    data = b"".join([read(7, number) for number in range(n)])
    kernel = plain("bookie_requests")
    return lambda: kernel.take_reads(data, 0, len(data), 1 << 16)


def _scan(n: int) -> Callable[[], Any]:
    run = _messages(n, 1)
    kernel = plain("metadata")
    return lambda: kernel.scan(run)


def _scan_of_many_properties(n: int) -> Callable[[], Any]:
    run = _messages(2, n)
    kernel = plain("metadata")
    return lambda: kernel.scan(run)


def _hashes(n: int) -> Callable[[], Any]:
    run = _messages(n, 1)
    kernel = plain("metadata")
    return lambda: kernel.key_hashes(run)


def _batch(n: int, properties: int) -> bytes:
    """Messages with their own metadata, as they lie in one entry."""
    parts = []
    for number in range(n):
        single = api.SingleMessageMetadata(payload_size=1, partition_key=f"k{number}", sequence_id=number)
        for each in range(properties):
            single.properties.add(key=f"k{each}", value="v")
        encoded = single.SerializeToString()
        parts.append(len(encoded).to_bytes(4) + encoded + b"x")
    return b"".join(parts)


def _messages_of_a_batch(n: int) -> Callable[[], Any]:
    return _taken_apart(_batch(n, 1), n)


def _properties_in_a_batch(n: int) -> Callable[[], Any]:
    return _taken_apart(_batch(2, n), 2)


def _taken_apart(payload: bytes, count: int) -> Callable[[], Any]:
    kernel = plain("columns")

    def taken() -> None:
        columns, flags = array("q", bytes(8 * COLUMNS * count)), bytearray(count)
        start, end, counts = (memoryview(array("q", [place])) for place in (0, len(payload), count))
        assert kernel.take_messages(payload, start, end, counts, memoryview(columns), memoryview(flags))

    return taken


KERNELS = (
    *(_sends, _acks, _ack_of_many, _ack_mix, _adds, _reads, _scan, _scan_of_many_properties, _hashes),
    *(_messages_of_a_batch, _properties_in_a_batch),
)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__.strip("_"))
def test_a_kernel_costs_steps_linear_in_what_it_takes(kernel: Callable[[int], Callable[[], Any]]) -> None:
    assert_linear(kernel, 100)
