"""Answers of pulsar-client to wrong usage, and the messages that its options make."""

import zlib

import pytest

from cli.client.__main__ import main
from cli.client.produce import _properties
from cli.client.received import Undecodable, decoded
from wire.generated.pulsar_api_pb2 import ZLIB, EncryptionKeys, KeyValue, MessageMetadata, SingleMessageMetadata
from wire.payloads import payload_section


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["consume", "t"], "Missing required option: '--subscription-name="),
        (["produce", "t", "-c"], "--chunking: not offered here"),
        (["produce", "t", "-vs", "avro", "-m", "x"], "expected bytes, string, avro:DEFINITION or json:DEFINITION"),
        (["produce", "t", "-m", "x", "-n", "0"], "Number of times need to be positive number."),
        (["produce", "t", "-m", "x", "-p", "a"], "expected KEY=VALUE"),
        (["consume", "t", "-s", "s", "-t", "Wrong"], "Exclusive"),
        (["consume", "t", "-s", "s", "-st", "avro"], "expected one of [bytes, auto_consume]"),
        (["consume", "t", "-s", "s", "--regx"], "Unknown option: '--regx'. Did you mean '--regex'?"),
        (["consume", "public/default/(", "-s", "s", "--regex"], "not a regular expression"),
        (["consume", "t", "-s", "s", "-n", "-1"], "Number of messages should be zero or positive."),
        (["read", "t", "-m", "5"], "expected earliest, latest or <ledgerId>:<entryId>"),
        (["consume", "a/b", "-s", "s"], "Invalid short topic name 'a/b'"),
        (["consume", "t", "-s", "s", "-mc", "5"], "--max_chunked_msg: not offered here"),
        (["consume", "t", "-s", "s", "-ca", "CONSUME"], "--crypto-failure-action: not offered here"),
        (["prodce", "t"], "Unknown command: 'prodce'. Did you mean 'produce'?"),
        ([], "Missing command"),
    ],
)
def test_wrong_usage_is_told_with_exit_code_1(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert said in capsys.readouterr().err


def test_a_broker_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", "pulsar://127.0.0.1:1", "produce", "t", "-m", "x"]) == 1
    assert "pulsar://127.0.0.1:1" in capsys.readouterr().err


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


def test_properties_are_separated_by_commas_where_each_part_is_one() -> None:
    found = [(each.key, each.value) for each in _properties(["a=b,c=d", "list=1,2", "e=f=g"])]
    assert found == [("a", "b"), ("c", "d"), ("list", "1,2"), ("e", "f=g")]
