"""A Pulsar client that costs next to nothing, so that what is measured is the server: blocking sockets, prepared frames.

All messages of a run are the same bytes, sequence id included (no deduplication). Not a client for anything else.
"""

import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import crc32c

from wire.frames import PONG
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe, MessageMetadata, SingleMessageMetadata

RECEIVE_BYTES = 1 << 18
FRAMES_PER_WRITE_BYTES = 1 << 16
SOCKET_SECONDS_MAX = 60.0
KIND_AT = 9
"""Offset of the command's type in a frame: after two lengths and the tag."""


class Unexpected(Exception):
    """The server answered something else."""


def frame(command: BaseCommand, section: bytes = b"") -> bytes:
    body = command.SerializeToString()
    return (4 + len(body) + len(section)).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body + section


def is_kind(data: bytes, kind: int) -> bool:
    """True; Unexpected when the command of this frame is another one."""
    if data[KIND_AT - 4] != kind:
        raise Unexpected(str(BaseCommand.FromString(data[4 : 4 + int.from_bytes(data[:4], "big")])))
    return True


def send_frame(payload_bytes: int, batch: int) -> bytes:
    """A SEND of `batch` messages (1: not batched) of `payload_bytes` each."""
    metadata = MessageMetadata(producer_name="benchmark", sequence_id=0, publish_time=time.time_ns() // 1_000_000)
    payload = bytes(payload_bytes)
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = 0, 1 << 28
    if batch > 1:
        metadata.num_messages_in_batch = command.send.num_messages = batch
        single = SingleMessageMetadata(payload_size=payload_bytes).SerializeToString()
        payload = (len(single).to_bytes(4, "big") + single + payload) * batch
    head = metadata.SerializeToString()
    body = len(head).to_bytes(4, "big") + head + payload
    return frame(command, b"\x0e\x01" + crc32c.crc32c(body).to_bytes(4, "big") + body)


def single_frame(payload_bytes: int, deliver_at_ms: int | None, sequence_id: int = 1 << 28, payload: bytes = b"") -> bytes:
    """A SEND of one message, with a delivery time if any; `payload` is filled up to `payload_bytes`."""
    metadata = MessageMetadata(producer_name="benchmark", sequence_id=sequence_id, publish_time=time.time_ns() // 1_000_000)
    if deliver_at_ms is not None:
        metadata.deliver_at_time = deliver_at_ms
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = 0, sequence_id
    head = metadata.SerializeToString()
    body = len(head).to_bytes(4, "big") + head + payload.ljust(payload_bytes, b" ")
    return frame(command, b"\x0e\x01" + crc32c.crc32c(body).to_bytes(4, "big") + body)


class RawClient:
    """One connection."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("pulsar://").rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=SOCKET_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pending = b""
        connect = BaseCommand(type=BaseCommand.CONNECT)
        connect.connect.client_version, connect.connect.protocol_version = "benchmark", 20
        self.ask(connect, BaseCommand.CONNECTED)

    def close(self) -> None:
        self._socket.close()

    def ask(self, command: BaseCommand, answer: int) -> BaseCommand:
        self._socket.sendall(frame(command))
        while True:
            for data in self.frames():
                got = BaseCommand.FromString(data[4 : 4 + int.from_bytes(data[:4], "big")])
                if got.type == answer:
                    return got
                if got.type != BaseCommand.ACTIVE_CONSUMER_CHANGE:
                    raise Unexpected(str(got))

    def frames(self) -> Iterator[bytes]:
        """The whole frames of one read, without their first length. A PING is answered, and none of them."""
        received = self._socket.recv(RECEIVE_BYTES)
        if not received:
            raise Unexpected("the server closed the connection")
        data = self._pending + received
        position = 0
        while len(data) - position >= 4:
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            if end > len(data):
                break
            if data[position + KIND_AT] == BaseCommand.PING:
                self._socket.sendall(PONG)
            else:
                yield data[position + 4 : end]
            position = end
        self._pending = data[position:]

    def producer(self, topic: str, producer_id: int = 0) -> None:
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic, command.producer.producer_id, command.producer.request_id = topic, producer_id, producer_id + 1
        self.ask(command, BaseCommand.PRODUCER_SUCCESS)

    def subscribe(self, topic: str, subscription: str, kind: CommandSubscribe.SubType) -> None:
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        subscribe = command.subscribe
        subscribe.topic, subscribe.subscription, subscribe.sub_type = topic, subscription, kind
        subscribe.consumer_id = 0
        subscribe.request_id = 1
        subscribe.initial_position = CommandSubscribe.Earliest
        self.ask(command, BaseCommand.SUCCESS)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def flow(self, permits: int) -> None:
        command = BaseCommand(type=BaseCommand.FLOW)
        command.flow.consumer_id, command.flow.message_permits = 0, permits
        self._socket.sendall(frame(command))

    def publish(self, one: bytes, window: int, seconds: float, frames_max: int = sys.maxsize) -> int:
        """Frames acknowledged within about `seconds`, at most about `frames_max`, with at most `window` in flight."""
        block = max(1, min(window // 2, FRAMES_PER_WRITE_BYTES // len(one)))
        blob = one * block
        sent = acknowledged = 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and sent < frames_max:
            while sent - acknowledged + block <= window:
                self._socket.sendall(blob)
                sent += block
            acknowledged += self._receipts()
        while acknowledged < sent:
            acknowledged += self._receipts()
        return acknowledged

    def publish_all(self, frames: Sequence[bytes], times: int, window: int) -> None:
        """All of them, again and again, with at most `window` in flight."""
        step = max(1, window // 4)
        blocks = [(b"".join(frames[at : at + step]), len(frames[at : at + step])) for at in range(0, len(frames), step)]
        sent = acknowledged = 0
        for _ in range(times):
            for block, count in blocks:
                while sent + count - acknowledged > window:
                    acknowledged += self._receipts()
                self._socket.sendall(block)
                sent += count
        while acknowledged < sent:
            acknowledged += self._receipts()

    def _receipts(self) -> int:
        """Count of receipts that came with one read."""
        return sum(1 for data in self.frames() if is_kind(data, BaseCommand.SEND_RECEIPT))

    def publish_one_at_a_time(self, one: bytes, seconds: float) -> list[float]:
        """Latencies in seconds, sorted."""
        latencies = []
        end = time.perf_counter() + seconds
        while (before := time.perf_counter()) < end:
            self._socket.sendall(one)
            while not self._receipts():
                continue
            latencies.append(time.perf_counter() - before)
        return sorted(latencies)

    def consume(self, entries: int, permits: int, messages_per_entry: int) -> int:
        """Bytes of `entries` entries, without acknowledging them; permits are refilled at half."""
        self.flow(permits)
        left, owed, total = entries, 0, 0
        while left > 0:
            for data in self.frames():
                is_kind(data, BaseCommand.MESSAGE)
                left -= 1
                owed += messages_per_entry
                total += len(data)
            if owed >= permits // 2:
                self.flow(owed)
                owed = 0
        return total


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """CPU seconds and resident megabytes of a process, from /proc."""

    cpu_seconds: float
    resident_mb: float


def process_use(pid: int) -> ProcessUse:
    with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/status") as status:
        ticks = stat.read().rsplit(")", 1)[1].split()[11:13]
        resident = next(line for line in status if line.startswith("VmRSS"))
    return ProcessUse(sum(map(int, ticks)) / 100, int(resident.split()[1]) / 1024)
