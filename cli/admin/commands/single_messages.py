"""The messages of a batch, read by hand: the wire's own code costs more to import than this tool may take. Pure."""

from typing import NamedTuple

from cli.admin.context import CommandFailed


class Single(NamedTuple):
    """Event time in milliseconds, 0 for none."""

    properties: dict[str, str]
    event_time: int
    payload: bytes


def messages_of_batch(data: bytes, count: int) -> list[Single]:
    """Each: its metadata's length (4 bytes), SingleMessageMetadata, payload. CommandFailed when it is torn."""
    found: list[Single] = []
    at = 0
    try:
        for _ in range(count):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            single, payload_bytes = _metadata(data[at + 4 : end])
            if end + payload_bytes > len(data):
                raise IndexError(end)
            found.append(single._replace(payload=data[end : end + payload_bytes]))
            at = end + payload_bytes
    except IndexError:
        raise CommandFailed(f"a batch of {count} messages ends after {len(found)}: it is damaged or encrypted") from None
    return found


def _metadata(data: bytes) -> tuple[Single, int]:
    """Fields 1 (properties), 3 (payload size) and 5 (event time) of Apache's SingleMessageMetadata."""
    properties: dict[str, str] = {}
    event_time = payload_bytes = at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            if tag >> 3 == 1:
                key, text = _pair(data[at : at + value])
                properties[key] = text
            at += value
        elif tag >> 3 == 3:
            payload_bytes = value
        elif tag >> 3 == 5:
            event_time = value
    return Single(properties, event_time, b""), payload_bytes


def _pair(data: bytes) -> tuple[str, str]:
    found = ["", ""]
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        if tag >> 3 in (1, 2):
            found[(tag >> 3) - 1] = data[at : at + size].decode(errors="replace")
        at += size
    return found[0], found[1]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at
