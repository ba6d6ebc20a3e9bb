"""wire.payloads: payload sections, their checksums, and batches."""

from contextlib import suppress

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.frame_samples import metadata, section
from wire.errors import ChecksumMismatch, MalformedPayload, RemoteError
from wire.generated.pulsar_api_pb2 import SingleMessageMetadata
from wire.payloads import (
    batch_messages,
    broker_entry_metadata,
    message_metadata,
    payload_section,
    split_section,
    verify,
)

STAMPED = bytes.fromhex("0e0200000004082a10090e01355fd5da000000120a0770726f642dc3a9100718fbd095ffbc3168656c6c6f")
"""Written by Apache's classes (pulsar 4.0.8)."""


def test_an_entry_of_apaches_is_split_into_its_parts() -> None:
    parts = split_section(STAMPED)
    verify(parts)
    stamp = broker_entry_metadata(parts)
    assert stamp is not None
    assert (stamp.broker_timestamp, stamp.index) == (42, 9)
    found = message_metadata(parts)
    assert (found.producer_name, found.sequence_id, found.publish_time) == ("prod-é", 7, 1700000000123)
    assert bytes(parts.payload) == b"hello"


def test_our_section_is_apaches() -> None:
    assert payload_section(metadata("prod-é", 7, 1700000000123), b"hello") == STAMPED[10:]


def test_a_section_needs_no_checksum() -> None:
    parts = split_section(section(b"meta", b"body", checksum=False))
    assert (parts.checksum, bytes(parts.metadata), bytes(parts.payload)) == (None, b"meta", b"body")
    verify(parts)


@pytest.mark.parametrize("bit", range(8 * 2, 8 * len(section(b"meta", b"body"))))
def test_a_flipped_bit_is_noticed(bit: int) -> None:
    damaged = bytearray(section(b"meta", b"body"))
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises((ChecksumMismatch, MalformedPayload)):
        verify(split_section(damaged))


def test_a_section_cut_anywhere_is_refused_or_shorter() -> None:
    whole = section(metadata().SerializeToString())
    for cut in range(len(whole)):
        with pytest.raises(MalformedPayload):
            split_section(whole[:cut])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes where the size of the message metadata should be"),
        (b"\x0e\x01\0\0", "checksum cut off after 2 bytes"),
        (b"\x0e\x02\0\0", "2 bytes where the size of the broker entry metadata should be"),
        (b"\x0e\x02\xff\xff\xff\xffab", "broker entry metadata of 4294967295 bytes, but only 2 follow"),
        (b"\0\0\0\x05abcd", "message metadata of 5 bytes, but only 4 follow"),
    ],
)
def test_a_malformed_payload_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedPayload) as caught:
        split_section(data)
    assert caught.value.reason == reason


def test_metadata_must_be_readable_and_complete() -> None:
    with pytest.raises(MalformedPayload, match="unreadable"):
        message_metadata(split_section(section(b"\x0a\x05ab")))
    with pytest.raises(MalformedPayload, match="required"):
        message_metadata(split_section(section(b"\x0a\x01p")))
    with pytest.raises(MalformedPayload, match="unreadable"):
        broker_entry_metadata(split_section(b"\x0e\x02\0\0\0\1\x08" + section()))


def batch(bodies: list[bytes]) -> bytes:
    out = b""
    for body in bodies:
        single = SingleMessageMetadata(payload_size=len(body)).SerializeToString()
        out += len(single).to_bytes(4) + single + body
    return out


@given(st.lists(st.binary(max_size=10), max_size=5))
def test_a_batch_is_taken_apart(bodies: list[bytes]) -> None:
    assert [bytes(body) for _, body in batch_messages(batch(bodies), len(bodies))] == bodies


def test_a_batch_that_ends_early_is_refused() -> None:
    whole = batch([b"ab", b"cd"])
    for cut in range(len(whole)):
        with pytest.raises(MalformedPayload):
            list(batch_messages(whole[:cut], 2))
    with pytest.raises(MalformedPayload, match="size"):
        list(batch_messages(b"\0\0\0\x0b" + SingleMessageMetadata(payload_size=-1).SerializeToString(), 1))


@given(st.binary(max_size=60))
def test_any_bytes_are_parts_or_a_remote_error(data: bytes) -> None:
    with suppress(RemoteError):
        parts = split_section(data)
        verify(parts)
        message_metadata(parts)
        broker_entry_metadata(parts)
        list(batch_messages(parts.payload, 3))


def test_checksum_and_library_agree() -> None:
    parts = split_section(section(b"meta", b"body"))
    assert parts.checksum == crc32c.crc32c(parts.checked)
