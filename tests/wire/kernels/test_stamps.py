"""wire.kernels.stamps: what brokers put in front of messages, compiled and not."""

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from wire.payloads import broker_entry_metadata, split_section, stored_broker_entry_metadata
from wire.run import EntryBatch

PLAIN, INSTALLED = both("stamps")
BOTH = pytest.mark.parametrize("stamps", [PLAIN, INSTALLED], ids=["plain", "installed"])
TIME = bytes.fromhex("80d095ffbc31")
"""1,700,000,000,000 as a varint."""
SECTION = (2).to_bytes(4) + b"\x08\x01" + b"payload"


def blank(payloads: list[bytes], header_bytes: int = 36, messages: int = 7) -> EntryBatch:
    buffer, offsets = bytearray(), array("I", [0])
    for payload in payloads:
        buffer += bytes(header_bytes) + payload
        offsets.append(len(buffer))
    return EntryBatch(buffer, offsets, header_bytes, messages)


def payloads_of(batch: EntryBatch) -> list[bytes]:
    starts, ends = batch.offsets, batch.offsets[1:]
    return [bytes(batch.buffer[start + batch.header_bytes : end]) for start, end in zip(starts, ends, strict=False)]


@BOTH
def test_the_section_is_apaches(stamps: ModuleType) -> None:
    stamped = stamps.stamp(blank([SECTION, SECTION]), array("I", (1, 10)), 1_700_000_000_000, 41, True)
    assert payloads_of(stamped) == [
        bytes.fromhex("0e020000000908") + TIME + b"\x10\x2a" + SECTION,
        bytes.fromhex("0e020000000908") + TIME + b"\x10\x34" + SECTION,
    ]


@BOTH
@given(
    st.lists(st.tuples(st.binary(max_size=40), st.integers(1, 300)), min_size=1, max_size=12),
    st.sampled_from((32, 36)),
    st.integers(-1, (1 << 62)),
    st.integers(-1, 1 << 62),
    st.booleans(),
)
def test_each_entry_has_the_time_and_the_index_of_its_last_message(
    stamps: ModuleType, entries: list[tuple[bytes, int]], header_bytes: int, now_ms: int, index: int, has_index: bool
) -> None:
    batch = blank([SECTION + tail for tail, _ in entries], header_bytes)
    stamped = stamps.stamp(batch, array("I", [messages for _, messages in entries]), now_ms, index, has_index)
    assert (stamped.header_bytes, stamped.message_count) == (header_bytes, 7)
    assert len(stamped.buffer) == stamped.offsets[-1]
    for payload, (tail, messages) in zip(payloads_of(stamped), entries, strict=True):
        index += messages
        section = split_section(payload)
        found = broker_entry_metadata(section)
        assert found is not None
        assert found == stored_broker_entry_metadata(payload)
        assert (found.broker_timestamp if found.HasField("broker_timestamp") else -1) == now_ms
        assert (found.index if found.HasField("index") else None) == (index if has_index else None)
        assert payload.endswith(SECTION + tail)


@BOTH
def test_counts_and_entries_that_do_not_fit_are_refused(stamps: ModuleType) -> None:
    batch = blank([SECTION])
    with pytest.raises(ValueError, match="2 numbers of messages for 1 entries"):
        stamps.stamp(batch, array("I", (1, 1)), 0, 0, True)
    for offsets in ((0, 10), (0, 1000)):
        with pytest.raises(ValueError, match="entry 0 does not fit"):
            stamps.stamp(EntryBatch(batch.buffer, array("I", offsets), 36, 1), array("I", (1,)), 0, 0, True)
