"""wire.kernels.metadata: flags, counts, key hashes and times of entries, compiled and not.

The golden values come from Apache's own classes (pulsar 4.0.8): Commands.serializeMetadataAndPayload, Commands.peekStickyKey,
Commands.getEntryTimestamp and Murmur3_32Hash.makeHash.
"""

from array import array
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from tests.wire.frame_samples import metadata, section, stored
from wire.generated.pulsar_api_pb2 import EncryptionKeys, MessageMetadata
from wire.run import (
    FLAG_BATCH,
    FLAG_CHUNK,
    FLAG_DELAYED,
    FLAG_ENCRYPTED,
    FLAG_MARKER,
    FLAG_TRANSACTION,
    FLAG_UNPARSEABLE,
    EntryRun,
)

PLAIN, INSTALLED = both("metadata")
BOTH = pytest.mark.parametrize("kernel", [PLAIN, INSTALLED], ids=["plain", "installed"])
NO_KEY_HASH = 504741539
"""Hash of "NONE_KEY"."""


def with_fields(**fields: Any) -> bytes:
    message = metadata("prod-é", 7, 1700000000123)
    for name, value in fields.items():
        setattr(message, name, value)
    return section(message.SerializeToString(), b"hello")


def encrypted() -> bytes:
    message = metadata()
    message.encryption_keys.append(EncryptionKeys(key="k", value=b"v"))
    return section(message.SerializeToString())


@BOTH
def test_counts_and_flags_of_each_entry(kernel: ModuleType) -> None:
    expected = [
        (with_fields(), 1, 0),
        (with_fields(num_messages_in_batch=1), 1, FLAG_BATCH),
        (with_fields(num_messages_in_batch=1000), 1000, FLAG_BATCH),
        (with_fields(marker_type=21), 1, FLAG_MARKER),
        (with_fields(num_chunks_from_msg=3, chunk_id=0), 1, FLAG_CHUNK),
        (with_fields(num_chunks_from_msg=1), 1, 0),
        (with_fields(deliver_at_time=5), 1, FLAG_DELAYED),
        (with_fields(txnid_least_bits=0, txnid_most_bits=0), 1, FLAG_TRANSACTION),
        (with_fields(txnid_least_bits=0), 1, 0),
        (encrypted(), 1, FLAG_ENCRYPTED),
        (with_fields(num_messages_in_batch=5, deliver_at_time=-1), 5, FLAG_BATCH | FLAG_DELAYED),
    ]
    found = kernel.scan(stored([payload for payload, _, _ in expected]))
    assert list(found.message_counts) == [count for _, count, _ in expected]
    assert list(found.flags) == [flags for _, _, flags in expected]
    assert found.message_count == sum(found.message_counts)
    assert found.any_flags == 127 - FLAG_UNPARSEABLE


@BOTH
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\1",
        b"\x0e\x01\0\0\0\0",
        b"\x0e\x02\0\0\0\1",
        b"\x0e\x02\xff\xff\xff\xff" + section(metadata().SerializeToString()),
        section(b""),
        section(metadata().SerializeToString()[:-2]),
        section(MessageMetadata(producer_name="p", sequence_id=1).SerializePartialToString()),
        section(metadata().SerializeToString() + b"\x0b"),
        section(metadata().SerializeToString() + b"\x00\x00"),
        section(metadata().SerializeToString() + b"\x58"),
        section(metadata().SerializeToString() + b"\x58\x00"),
        section(metadata().SerializeToString() + b"\x58" + b"\xff" * 9 + b"\x01"),
        section(metadata().SerializeToString() + b"\x58" + b"\xff" * 10 + b"\x01"),
        section(metadata().SerializeToString() + b"\x32\x05abcd"),
    ],
)
def test_unreadable_metadata_counts_as_one_message(kernel: ModuleType, payload: bytes) -> None:
    run = stored([payload])
    found = kernel.scan(run)
    assert (list(found.message_counts), list(found.flags)) == ([1], [FLAG_UNPARSEABLE])
    assert list(kernel.key_hashes(run)) == [NO_KEY_HASH]
    assert list(kernel.publish_times(run)) == [-1]


@BOTH
def test_nothing_of_one_entry_is_taken_for_the_next(kernel: ModuleType) -> None:
    rich = with_fields(num_messages_in_batch=9, partition_key="QQ==", partition_key_b64_encoded=True, ordering_key=b"o")
    nameless = MessageMetadata(sequence_id=1, publish_time=2).SerializePartialToString()
    run = stored([bytes.fromhex(STAMPED), rich, section(nameless), with_fields(), with_fields(partition_key="QQ==")])
    found = kernel.scan(run)
    assert list(found.message_counts) == [1, 9, 1, 1, 1]
    assert list(found.flags) == [0, FLAG_BATCH, FLAG_UNPARSEABLE, 0, 0]
    assert list(kernel.publish_times(run)) == [42, 1700000000123, -1, 1700000000123, 1700000000123]
    hashes = list(kernel.key_hashes(run))
    alone = [kernel.key_hashes(run.entries(entry_id, 1))[0] for entry_id in range(5)]
    assert hashes == alone
    assert len(set(hashes)) == 4


@BOTH
def test_offsets_beyond_the_buffer_are_refused(kernel: ModuleType) -> None:
    for offsets in ([0, 35], [0, 101], [10, 5]):
        run = EntryRun(1, 0, bytes(100), array("I", offsets))
        for function in (kernel.scan, kernel.key_hashes, kernel.publish_times):
            with pytest.raises(ValueError, match="fit"):
                function(run)


@BOTH
def test_unknown_fields_are_skipped(kernel: ModuleType) -> None:
    unknown = b"\xc0\x3e\x01" + b"\xc1\x3e" + bytes(8) + b"\xc5\x3e" + bytes(4) + b"\xc2\x3e\x03abc"
    found = kernel.scan(stored([section(metadata().SerializeToString() + unknown + b"\x58\x07")]))
    assert list(found.message_counts) == [7]


@BOTH
def test_broker_entry_metadata_is_stepped_over_and_its_time_counts(kernel: ModuleType) -> None:
    payloads = [bytes.fromhex(text) for text in (STAMPED, UNSTAMPED)]
    run = stored([*payloads, with_fields()])
    assert list(kernel.publish_times(run)) == [42, 1700000000123, 1700000000123]
    assert kernel.scan(run).any_flags == 0


STAMPED = "0e0200000004082a10090e01355fd5da000000120a0770726f642dc3a9100718fbd095ffbc3168656c6c6f"
UNSTAMPED = "0e020000000210090e01355fd5da000000120a0770726f642dc3a9100718fbd095ffbc3168656c6c6f"

GOLDEN_ENTRIES = [
    ("0e01355fd5da000000120a0770726f642dc3a9100718fbd095ffbc3168656c6c6f", {}, 1549909440),
    ("0e01641acfbe000000190a0770726f642dc3a9100718fbd095ffbc3132054bc3a4736568656c6c6f", {"partition_key": "Käse"}, 2041094490),
    (
        "0e0129222bda0000001b0a0770726f642dc3a9100718fbd095ffbc3132016b9201030001ff68656c6c6f",
        {"partition_key": "k", "ordering_key": b"\0\1\xff"},
        616595799,
    ),
    (
        "0e0199f19e970000001f0a0770726f642dc3a9100718fbd095ffbc3132084151494442413d3d88010168656c6c6f",
        {"partition_key": "AQIDBA==", "partition_key_b64_encoded": True},
        1043635621,
    ),
    (
        "0e0108d5250b0000001b0a0770726f642dc3a910ffffffffffffffffff0118fbd095ffbc3168656c6c6f",
        {"sequence_id": (1 << 64) - 1},
        1505137835,
    ),
    (
        "0e014391c31c0000001b0a0770726f642dc3a9108080808080808080800118fbd095ffbc3168656c6c6f",
        {"sequence_id": 1 << 63},
        1987155729,
    ),
]


@BOTH
@pytest.mark.parametrize(("entry", "fields", "key_hash"), GOLDEN_ENTRIES)
def test_key_hashes_are_apaches(kernel: ModuleType, entry: str, fields: dict[str, Any], key_hash: int) -> None:
    assert with_fields(**fields).hex() == entry
    assert list(kernel.key_hashes(stored([bytes.fromhex(entry)]))) == [key_hash]


@BOTH
@pytest.mark.parametrize(
    ("fields", "key_hash"),
    [
        ({"partition_key": ""}, 0),
        ({"ordering_key": b""}, 0),
        ({"partition_key": "", "partition_key_b64_encoded": True}, 0),
        ({"partition_key": "x", "null_partition_key": True}, 1050319643),
        ({"null_partition_key": True}, 1549909440),
        ({"producer_name": ""}, 1918780564),
    ],
)
def test_key_hashes_of_empty_and_flagged_keys(kernel: ModuleType, fields: dict[str, Any], key_hash: int) -> None:
    assert list(kernel.key_hashes(stored([with_fields(**fields)]))) == [key_hash]


MALFORMED = ["Q", "Q===", "QQ=", "=", "Q!==", "QUJDRA==x", "QUJD====", "QUJD=", "QUI=QUI=", "Q-_="]


@BOTH
@pytest.mark.parametrize(
    ("key", "key_hash"),
    [
        ("QQ", 1423767502),
        ("QQ==", 1423767502),
        ("QUI", 1946851987),
        ("QUI=", 1946851987),
        ("QUJD", 1136772405),
        *(
            (bad, NO_KEY_HASH)
            for bad in ["Q", "Q===", "QQ=", "=", "Q!==", "QUJDRA==x", "QUJD====", "QUJD=", "QUI=QUI=", "Q-_="]
        ),
    ],
)
def test_base64_keys_are_decoded_as_javas_decoder_does(kernel: ModuleType, key: str, key_hash: int) -> None:
    payload = with_fields(partition_key=key, partition_key_b64_encoded=True)
    assert list(kernel.key_hashes(stored([payload]))) == [key_hash]


MURMUR = [
    0, 249356227, 1923444155, 951373595, 230784534, 827118240, 239933944, 1135376151, 232968808, 2063133296,
    1957089874, 1264428023, 731294607, 2101080688, 474327496, 2033498974, 343908756, 1671536923, 2028985448, 1964740608,
]  # fmt: skip


@BOTH
def test_murmur_of_every_remainder_of_four(kernel: ModuleType) -> None:
    keys = [bytes((i * 37 + size * 11 + 200) & 255 for i in range(size)) for size in range(20)]
    run = stored([with_fields(ordering_key=key) for key in keys])
    assert list(kernel.key_hashes(run)) == MURMUR


@BOTH
def test_results_have_the_promised_types(kernel: ModuleType) -> None:
    run = stored([with_fields()] * 3)
    found = kernel.scan(run)
    assert (found.message_counts.typecode, found.flags.typecode) == ("I", "B")
    assert kernel.key_hashes(run).typecode == "I"
    assert kernel.publish_times(run) == array("q", [1700000000123] * 3)
    assert kernel.scan(stored([])).message_count == 0


@given(st.binary(max_size=60))
@example(b"\x0a\x01p\x10\x01\x18\x02")
@example(b"\x0a\x01p\x10\x01\x18\x02\x58\x05\xa0\x01\x05")
def test_readable_means_readable_by_protobuf(encoded: bytes) -> None:
    run = stored([section(encoded)])
    found = INSTALLED.scan(run)
    assert found == PLAIN.scan(run)
    assert INSTALLED.key_hashes(run) == PLAIN.key_hashes(run)
    assert INSTALLED.publish_times(run) == PLAIN.publish_times(run)
    if found.flags[0] & FLAG_UNPARSEABLE:
        return
    try:
        message = MessageMetadata.FromString(encoded)
    except DecodeError:
        pytest.fail("the kernel reads what protobuf refuses")
    assert message.IsInitialized()
    assert found.message_counts[0] == message.num_messages_in_batch
    assert bool(found.flags[0] & FLAG_MARKER) == message.HasField("marker_type")


TEXT = st.text(max_size=10)
U64 = st.integers(0, (1 << 64) - 1)
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "partition_key": TEXT,
    "ordering_key": st.binary(max_size=10),
    "num_messages_in_batch": st.integers(1, 1 << 20),
    "deliver_at_time": st.integers(-(1 << 63), (1 << 63) - 1),
    "marker_type": st.integers(0, 30),
    "txnid_least_bits": U64,
    "txnid_most_bits": U64,
    "num_chunks_from_msg": st.integers(1, 4),
    "event_time": U64,
    "uuid": TEXT,
    "schema_version": st.binary(max_size=8),
    "compression": st.integers(0, 4),
    "partition_key_b64_encoded": st.booleans(),
}


@given(
    TEXT,
    U64,
    st.integers(0, (1 << 63) - 1),
    st.fixed_dictionaries({}, optional=OPTIONAL),
    st.booleans(),
)
def test_any_message_metadata_that_protobuf_writes_is_read(
    producer_name: str, sequence_id: int, publish_time: int, fields: dict[str, Any], checksum: bool
) -> None:
    message = MessageMetadata(producer_name=producer_name, sequence_id=sequence_id, publish_time=publish_time, **fields)
    run = stored([section(message.SerializeToString(), b"payload", checksum=checksum)])
    found = INSTALLED.scan(run)
    assert found == PLAIN.scan(run)
    assert INSTALLED.key_hashes(run) == PLAIN.key_hashes(run)
    assert list(INSTALLED.publish_times(run)) == [publish_time]
    assert list(found.message_counts) == [message.num_messages_in_batch]
    has_both = message.HasField("txnid_least_bits") and message.HasField("txnid_most_bits")
    expected = {
        FLAG_BATCH: message.HasField("num_messages_in_batch"),
        FLAG_DELAYED: message.HasField("deliver_at_time"),
        FLAG_MARKER: message.HasField("marker_type"),
        FLAG_TRANSACTION: has_both,
        FLAG_CHUNK: message.num_chunks_from_msg > 1,
        FLAG_ENCRYPTED: False,
        FLAG_UNPARSEABLE: False,
    }
    assert found.flags[0] == sum(flag for flag, is_set in expected.items() if is_set)


@BOTH
def test_batches_of_several_messages_with_a_partition_key_are_marked(kernel: ModuleType) -> None:
    bodies = [
        with_fields(partition_key="k", num_messages_in_batch=2),
        with_fields(partition_key="", num_messages_in_batch=2),
        with_fields(partition_key="k", num_messages_in_batch=1),
        with_fields(partition_key="k"),
        with_fields(num_messages_in_batch=2),
        with_fields(ordering_key=b"k", num_messages_in_batch=2),
        b"\xff\xff\xff\xff",
    ]
    assert kernel.keyed_batches(stored(bodies)) == bytes((1, 1, 0, 0, 0, 0, 0))
    assert kernel.keyed_batches(stored([])) == b""
