"""`pulsar-perf produce`: batches prepared once, sent at a rate, receipts timed."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from cli.client.connection import ClientError, PulsarConnection
from cli.client.produce import Producer
from cli.client.topic import connection_of, partitions_of
from cli.client_configuration import ClientConfiguration
from cli.perf.progress import Progress
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSend, MessageMetadata, SingleMessageMetadata
from wire.payloads import payload_section

OUTSTANDING_DEFAULT = 1000
WAIT_SECONDS_MAX = 0.05


def produce(configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None]) -> None:
    """Until as many are acknowledged as asked for, or the time is over. ClientError."""
    topic = partitions_of(values["topic"], configuration)[0]
    connection = connection_of(topic, configuration)
    try:
        producer = Producer(connection, topic)
        progress = Progress("produced", write, values["json"], values["stats-interval-seconds"])
        _Run(connection, producer.name, values, progress).run()
        progress.finish()
    finally:
        connection.close()


class _Run:
    """One producer; `_sent` has when each batch that waits for its receipt was sent, and how many messages are in it."""

    def __init__(self, connection: PulsarConnection, name: str, values: Mapping[str, Any], progress: Progress) -> None:
        self._connection, self._name, self._progress = connection, name, progress
        self._size, self._rate = values["size"], values["rate"]
        self._limit, self._seconds = values["num-messages"], values["test-duration"]
        window_ms = values["batch-time-window"]
        self._batch_max = 1 if values["disable-batching"] else values["batch-max-messages"]
        self._batch_max = max(1, min(self._batch_max, values["batch-max-bytes"] // (self._size + 16) or 1))
        self._window_seconds = window_ms / 1000
        self._outstanding = values["max-outstanding"] or OUTSTANDING_DEFAULT
        self._sent: deque[tuple[float, int]] = deque()
        self._count = self._sequence = 0
        self._sections: dict[int, bytes] = {}

    def run(self) -> None:
        begun = time.monotonic()
        while not self._over(begun):
            due = self._due(begun)
            if due and len(self._sent) < self._outstanding:
                self._send(due)
            self._take_receipts(0.0 if due else min(WAIT_SECONDS_MAX, max(self._window_seconds, 1 / max(1, self._rate))))
            self._progress.tick()
        while self._sent:
            self._take_receipts(None)

    def _over(self, begun: float) -> bool:
        return bool(
            (self._limit and self._count >= self._limit) or (self._seconds and time.monotonic() - begun >= self._seconds)
        )

    def _due(self, begun: float) -> int:
        """How many may be sent now, one batch at most; without a rate, a whole one."""
        due = self._batch_max if self._rate <= 0 else int((time.monotonic() - begun) * self._rate) - self._count + 1
        if self._limit:
            due = min(due, self._limit - self._count)
        return max(0, min(due, self._batch_max))

    def _send(self, messages: int) -> None:
        command = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=self._sequence))
        if self._batch_max > 1:
            command.send.num_messages = messages
        section = self._section(messages)
        self._connection.send_bytes(encode(command, section))
        self._sent.append((time.monotonic(), messages))
        self._sequence += messages
        self._count += messages

    def _section(self, messages: int) -> bytes:
        """With the time of now; the payload is prepared once for each size of batch."""
        if messages not in self._sections:
            payload = bytes(self._size)
            if self._batch_max > 1:
                single = SingleMessageMetadata(payload_size=self._size).SerializeToString()
                payload = (len(single).to_bytes(4) + single + payload) * messages
            self._sections[messages] = payload
        payload = self._sections[messages]
        metadata = MessageMetadata(
            producer_name=self._name, sequence_id=self._sequence, publish_time=time.time_ns() // 1_000_000
        )
        if self._batch_max > 1:
            metadata.num_messages_in_batch = messages
        return payload_section(metadata, payload)

    def _take_receipts(self, wait_seconds: float | None) -> None:
        """All that are there; None waits for one."""
        if wait_seconds is not None and not self._connection.has_more() and not self._connection.readable(wait_seconds):
            return
        first = True
        while first or self._connection.has_more():
            first = False
            command = self._connection.next_waiting().command
            if command.type == BaseCommand.SEND_RECEIPT:
                at, messages = self._sent.popleft()
                self._progress.add(messages, messages * self._size, (time.monotonic() - at) * 1000)
            elif command.type in (BaseCommand.SEND_ERROR, BaseCommand.CLOSE_PRODUCER, BaseCommand.ERROR):
                raise ClientError(f"the broker stops it: {BaseCommand.Type.Name(command.type)} {command.send_error.message}")
