"""End to end at a fixed rate, over a connection each for producer and consumer: latencies, and what each run of messages costs.

Runs are short here: what a server pays for one is not shared by many messages. CPU seconds at a fixed rate say how much that
is, and the switches of its threads. On a busy machine what comes meanwhile is taken together: then runs are not short any more.
"""

import threading
import time
from pathlib import Path

from benchmarks.raw_client import RawClient, frame, is_kind, send_frame
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandSubscribe

ACKNOWLEDGE_SECONDS = 0.1
"""Clients gather acknowledgements for so long."""
PERMITS = 100_000_000


def switches(pid: int) -> int:
    """Context switches of all threads of a process, so far."""
    texts = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status"))
    return sum(int(line.split()[1]) for text in texts for line in text.splitlines() if "ctxt_switches" in line)


class PacedRun:
    """Frames of `batch` messages on a topic, `rate` of them a second. `latencies` in seconds, of whole frames."""

    def __init__(self, url: str, topic: str, batch: int, rate: float) -> None:
        self._reader, self._writer = RawClient(url), RawClient(url)
        self._reader.subscribe(topic, "paced", CommandSubscribe.Exclusive)
        self._reader.flow(PERMITS)
        self._writer.producer(topic)
        self._one, self._rate = send_frame(1024, batch), rate
        self._sent_at: list[float] = []
        self.latencies: list[float] = []

    def run(self, frames: int) -> None:
        """All are published, receipts read, delivered and acknowledged when this returns."""
        first = len(self._sent_at)
        readers = [threading.Thread(target=read, args=(frames,)) for read in (self._receive, self._read_receipts)]
        for reader in readers:
            reader.start()
        began = time.perf_counter()
        for index in range(frames):
            time.sleep(max(0.0, began + index / self._rate - time.perf_counter()))
            self._sent_at.append(time.perf_counter())
            self._writer.send(self._one)
        for reader in readers:
            reader.join()
        assert len(self.latencies) == first + frames, "each frame is delivered once"

    def forget(self) -> None:
        """Drops the samples so far."""
        self._sent_at, self.latencies = [], []

    def _read_receipts(self, frames: int) -> None:
        while frames > 0:
            frames -= sum(is_kind(data, BaseCommand.SEND_RECEIPT) for data in self._writer.frames())

    def _receive(self, frames: int) -> None:
        acknowledged_at = time.perf_counter()
        while frames > 0:
            for data in self._reader.frames():
                is_kind(data, BaseCommand.MESSAGE)
                self.latencies.append(time.perf_counter() - self._sent_at[len(self.latencies)])
                frames -= 1
                last = data
            if not frames or time.perf_counter() - acknowledged_at > ACKNOWLEDGE_SECONDS:
                self._acknowledge(last)
                acknowledged_at = time.perf_counter()

    def _acknowledge(self, last: bytes) -> None:
        delivered = BaseCommand.FromString(last[4 : 4 + int.from_bytes(last[:4], "big")])
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id, command.ack.ack_type = 0, CommandAck.Cumulative
        command.ack.message_id.add().CopyFrom(delivered.message.message_id)
        self._reader.send(frame(command))
