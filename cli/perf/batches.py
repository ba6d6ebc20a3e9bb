"""Payload sections of `pulsar-perf produce`: batches or single messages, prepared once where all are alike."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cramjam

from cli.admin.arguments import WrongUsage
from wire.generated.pulsar_api_pb2 import LZ4, SNAPPY, ZLIB, ZSTD, MessageMetadata, SingleMessageMetadata
from wire.payloads import payload_section

_COMPRESSIONS: Mapping[str, tuple[Any, Callable[[bytes], bytes]]] = {
    "LZ4": (LZ4, lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False))),
    "ZLIB": (ZLIB, lambda data: bytes(cramjam.zlib.compress(data))),
    "ZSTD": (ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
    "SNAPPY": (SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
}
_SINGLE_BYTES = 16
"""About what each message in a batch costs beside its payload."""


class Batches:
    """`section` makes one. `messages_max`: how many messages one may have. WrongUsage, OSError for a file."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._size: int = values["size"]
        self._payloads = _payloads(values)
        self._compression = _COMPRESSIONS.get(values["compression"])
        self._keys = values.get("message-key-generation-mode")
        self._has_event_time = values["set-event-time"]
        self._delays = _delays(values)
        is_batched = not values["disable-batching"] and self._delays is None
        most = values["batch-max-messages"] if is_batched else 1
        self._is_batched = most > 1
        self.messages_max = max(1, min(most, values["batch-max-bytes"] // (self._size + _SINGLE_BYTES) or 1))
        self._prepared: dict[int, bytes] = {}

    def section(self, name: str, sequence: int, messages: int) -> bytes:
        """The section of a producer's next messages, with the time of now."""
        now_ms = time.time_ns() // 1_000_000
        metadata = MessageMetadata(producer_name=name, sequence_id=sequence, publish_time=now_ms)
        if self._is_batched:
            metadata.num_messages_in_batch = messages
        else:
            self._describe(metadata, sequence, now_ms)
        if self._delays is not None:
            metadata.deliver_at_time = now_ms + 1000 * random.randrange(*self._delays)
        payload = self._payload(sequence, messages, now_ms)
        if self._compression is not None:
            metadata.compression, compress = self._compression
            metadata.uncompressed_size = len(payload)
            payload = compress(payload)
        return payload_section(metadata, payload)

    def size_bytes(self, messages: int) -> int:
        """The size of their payloads."""
        return messages * self._size

    def _payload(self, sequence: int, messages: int, now_ms: int) -> bytes:
        if self._keys or self._has_event_time or len(self._payloads) > 1:
            return self._made(sequence, messages, now_ms)
        if messages not in self._prepared:
            self._prepared[messages] = self._made(sequence, messages, now_ms)
        return self._prepared[messages]

    def _made(self, sequence: int, messages: int, now_ms: int) -> bytes:
        if not self._is_batched:
            return random.choice(self._payloads)
        parts: list[bytes] = []
        for number in range(messages):
            payload = random.choice(self._payloads)
            single = SingleMessageMetadata(payload_size=len(payload))
            self._describe(single, sequence + number, now_ms)
            encoded = single.SerializeToString()
            parts += (len(encoded).to_bytes(4), encoded, payload)
        return b"".join(parts)

    def _describe(self, about: MessageMetadata | SingleMessageMetadata, number: int, now_ms: int) -> None:
        if self._keys:
            about.partition_key = str(number if self._keys == "autoIncrement" else random.randrange(1 << 31))
        if self._has_event_time:
            about.event_time = now_ms


def _payloads(values: Mapping[str, Any]) -> Sequence[bytes]:
    if not values.get("payload-file"):
        return [bytes(values["size"])]
    delimiter = values["payload-delimiter"].replace("\\n", "\n")
    found = [each.encode() for each in Path(values["payload-file"]).read_text().split(delimiter) if each]
    if not found:
        raise WrongUsage(f"--payload-file {values['payload-file']}: there is no payload in it")
    return found


def _delays(values: Mapping[str, Any]) -> tuple[int, int] | None:
    """Least delay and the bound above it, in seconds."""
    if values.get("delay-range"):
        first, comma, end = values["delay-range"].partition(",")
        if not comma or not (first + end).isdigit() or int(first) >= int(end):
            raise WrongUsage(f"--delay-range {values['delay-range']}: expected FROM,BEFORE in seconds")
        return int(first), int(end)
    return (values["delay"], values["delay"] + 1) if values["delay"] > 0 else None
