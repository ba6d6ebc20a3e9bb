"""Messages of one entry, as a client decodes them."""

import zlib

import pytest

from wire.generated.pulsar_api_pb2 import ZLIB, EncryptionKeys, KeyValue, MessageMetadata, SingleMessageMetadata
from wire.payloads import payload_section
from wire.received import Undecodable, decoded


def metadata(**more: object) -> MessageMetadata:
    return MessageMetadata(producer_name="p", sequence_id=1, publish_time=7, **more)  # type: ignore[arg-type]


def test_a_compressed_batch_is_taken_apart() -> None:
    body = b""
    for index in range(3):
        payload = b"m%d" % index
        single = SingleMessageMetadata(payload_size=len(payload), partition_key=f"k{index}", event_time=index)
        single.properties.append(KeyValue(key="n", value=str(index)))
        encoded = single.SerializeToString()
        body += len(encoded).to_bytes(4) + encoded + payload
    about = metadata(num_messages_in_batch=3, compression=ZLIB, uncompressed_size=len(body))
    found = decoded(payload_section(about, zlib.compress(body))).messages
    assert [(each.payload, each.key, each.event_time, dict(each.properties)) for each in found] == [
        (b"m%d" % index, f"k{index}", index, {"n": str(index)}) for index in range(3)
    ]


@pytest.mark.parametrize("stated", [10, 2**32 - 1])
def test_a_message_that_becomes_larger_than_stated_or_than_any_message_is_refused(stated: int) -> None:
    about = metadata(compression=ZLIB, uncompressed_size=stated)
    with pytest.raises(Undecodable, match="uncompressed"):
        decoded(payload_section(about, zlib.compress(bytes(1 << 20))))


def test_an_encrypted_message_is_refused() -> None:
    about = metadata()
    about.encryption_keys.append(EncryptionKeys(key="k", value=b"v"))
    with pytest.raises(Undecodable, match="encrypted"):
        decoded(payload_section(about, b"x"))


def test_a_message_in_chunks_is_told_not_shown_in_parts() -> None:
    section = payload_section(metadata(uuid="u", chunk_id=0, num_chunks_from_msg=3, total_chunk_msg_size=9), b"abc")
    with pytest.raises(Undecodable, match="in 3 chunks"):
        decoded(section)


def test_a_key_in_base64_is_told_as_it_is_stored_too() -> None:
    section = payload_section(metadata(partition_key="a2V5", partition_key_b64_encoded=True), b"x")
    message = decoded(section).messages[0]
    assert (message.key, message.key_text) == ("key", "a2V5")
