"""wire.frames: splitting, decoding and encoding, and what is said of each thing that can be wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import EncodeError
from hypothesis import given
from hypothesis import strategies as st

from tests.cost import steps
from tests.wire.frame_samples import ack, frame, send
from wire.errors import MalformedCommand, MalformedFrame, RemoteError, UnknownCommand
from wire.frames import PING, PONG, Frame, decode_command, encode, frame_end, next_frame
from wire.generated.pulsar_api_pb2 import (
    AuthData,
    BaseCommand,
    CommandConnect,
    CommandLookupTopic,
    CommandProducer,
    CommandSubscribe,
)
from wire.readable_text import is_readable

CONNECT = frame(BaseCommand(type=BaseCommand.CONNECT, connect=CommandConnect(client_version="v", protocol_version=21)))
SAMPLES = (CONNECT, PING, PONG, send(1, 2), ack(3, [(4, 5)]))


def all_frames(data: bytes, **bounds: int) -> tuple[list[Frame], int]:
    """The frames and the position after the last whole one."""
    found, at = [], 0
    while (one := next_frame(data, at, len(data), **bounds)) is not None:
        found.append(one)
        at = one.end
    return found, at


def sizes(total: int, command: int) -> bytes:
    return total.to_bytes(4) + command.to_bytes(4)


def test_a_stream_is_split_into_its_frames() -> None:
    data = b"".join(SAMPLES)
    found, at = all_frames(data)
    assert at == len(data)
    assert [encode(one.command, one.payload) for one in found] == list(SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_frame_cut_at_any_byte_is_not_whole_and_not_wrong(sample: bytes) -> None:
    for cut in range(len(sample)):
        assert next_frame(sample[:cut], 0, cut) is None
        assert next_frame(sample, 0, cut) is None


def outcome(data: bytes, pieces: list[int]) -> tuple[list[bytes], str]:
    """Feed the data in pieces, as a connection does; the frames, and the reason of the end."""
    found: list[bytes] = []
    buffer, at = b"", 0
    try:
        for piece in [*pieces, len(data)]:
            buffer += data[:piece]
            data = data[piece:]
            while (one := next_frame(buffer, at, len(buffer), frame_bytes_max=64)) is not None:
                found.append(encode(one.command, one.payload))
                at = one.end
    except RemoteError as error:
        return found, f"{type(error).__name__}: {error.reason}"
    return found, ""


NASTY = st.one_of(
    st.sampled_from(SAMPLES),
    st.binary(max_size=12),
    st.builds(lambda t, c, rest: sizes(t, c) + rest, st.integers(0, 40), st.integers(0, 40), st.binary(max_size=40)),
)


@given(st.lists(NASTY, max_size=6).map(b"".join), st.data())
def test_the_pieces_in_which_bytes_arrive_make_no_difference(data: bytes, draw: Any) -> None:
    whole = outcome(data, [])
    assert outcome(data, [1] * len(data)) == whole
    assert outcome(data, draw.draw(st.lists(st.integers(0, 20), max_size=8))) == whole


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"\0\0\0\0", "frame of 0 bytes, which holds no command"),
        (b"\0\0\0\4", "frame of 4 bytes, which holds no command"),
        (b"\xff\xff\xff\xff", r"frame of 4294967295 \(-1 as a signed number\) bytes, more than the 996 allowed"),
        (b"\x80\0\0\0", r"frame of 2147483648 \(-2147483648 as a signed number\) bytes"),
        (b"\0\0\3\xe5", "frame of 997 bytes, more than the 996 allowed"),
        (b"GET ", "frame of 1195725856 bytes, more than the 996 allowed: this is HTTP, which has a port of its own"),
        (b"\x16\3\1\2", "more than the 996 allowed: this is TLS, which has a port of its own"),
        (sizes(10, 0), "command of 0 bytes"),
        (sizes(10, 7), "command of 7 bytes in a frame of 10"),
        (sizes(10, 0xFFFFFFFF), "command of 4294967295 bytes in a frame of 10"),
    ],
)
def test_impossible_sizes_are_told_as_soon_as_they_are_there(head: bytes, reason: str) -> None:
    for cut in range(len(head)):
        assert frame_end(head[:cut], 0, cut, 1000) is None
    with pytest.raises(MalformedFrame, match=reason):
        next_frame(head, 0, len(head), 1000)


def test_the_largest_allowed_frame_passes() -> None:
    data = send(1, 1, bytes(100))
    assert next_frame(data, 0, len(data), len(data)) is not None
    with pytest.raises(MalformedFrame):
        next_frame(data, 0, len(data), len(data) - 1)


def test_the_end_of_a_frame_is_known_before_the_frame_is_there() -> None:
    data = send(1, 1, bytes(100))
    assert frame_end(data, 0, 8) == len(data)


@pytest.mark.parametrize(
    ("encoded", "error", "reason"),
    [
        (b"\x08\x45", UnknownCommand, "command of unknown type 69"),
        (b"\x08\xc8\x01\x32\x00", UnknownCommand, "command of unknown type 200"),
        (b"\x32\x00", MalformedCommand, "command without a type"),
        (b"\x08", MalformedCommand, "unreadable command of 1 bytes"),
        (b"\x08\x06", MalformedCommand, "SEND without its body"),
        (b"\x08\x06\x5a\x04\x08\x01\x10\x01", MalformedCommand, "SEND without its body"),
        (b"\x08\x06\x32\x02\x08\x01", MalformedCommand, "SEND without sequence_id"),
        (b"\x08\x06\x32\x05\x08\x01", MalformedCommand, "unreadable command of 6 bytes"),
        (b"\x08\x0a\x52\x06\x08\x01\x10\x00\x1a\x00", MalformedCommand, "ACK without message_id.ledger_id"),
        (b"\x08\x0a\x52\x04\x08\x01\x10\x07", MalformedCommand, "ACK without ack_type"),
    ],
)
def test_an_unreadable_command_is_refused_with_its_reason(encoded: bytes, error: type[RemoteError], reason: str) -> None:
    with pytest.raises(error) as caught:
        decode_command(encoded)
    assert caught.value.reason == reason


def test_text_that_is_not_utf8_is_refused_and_bytes_are_not_text() -> None:
    lookup = BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=CommandLookupTopic(topic="Käse", request_id=1))
    encoded = lookup.SerializeToString()
    assert decode_command(encoded).lookup_topic.topic == "Käse"
    with pytest.raises(MalformedCommand, match="LOOKUP with a topic that is not UTF-8"):
        decode_command(encoded.replace("ä".encode(), b"\xff\xfe"))
    nested = BaseCommand(type=BaseCommand.PRODUCER, producer=CommandProducer(topic="t", producer_id=1, request_id=1))
    nested.producer.metadata.add(key="key", value="value")
    with pytest.raises(MalformedCommand, match=r"PRODUCER with a metadata\.value that is not UTF-8"):
        decode_command(nested.SerializeToString().replace(b"value", b"\xff\xff\xff\xff\xff"))
    raw = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
    raw.auth_response.response.CopyFrom(AuthData(auth_data=b"\xff\xfe"))
    assert decode_command(raw.SerializeToString()) == raw


def test_text_is_checked_in_one_pass_however_much_there_is() -> None:
    """Looked at one by one, 140,000 pairs took a fifth of a second."""

    def checked(pairs: int, *, last: bytes = b"\xc3\xa4") -> Callable[[], object]:
        subscribe = CommandSubscribe(
            topic="t", subscription="s", consumer_id=1, request_id=1, sub_type=CommandSubscribe.Exclusive
        )
        for _ in range(pairs):
            subscribe.metadata.add(key="ä", value="")
        encoded = BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe).SerializeToString()
        at = encoded.rindex("ä".encode())
        return lambda: decode_command(encoded[:at] + last + encoded[at + 2 :])

    assert steps(checked(8000)) < 8000 * 60, "the weight of its bytes some times, and no statement for a pair"
    with pytest.raises(MalformedCommand, match=r"SUBSCRIBE with a metadata\.key that is not UTF-8"):
        checked(10, last=b"\xff\xff")()
    with pytest.raises(MalformedCommand, match="SUBSCRIBE with a text that is not UTF-8"):
        checked(20_000, last=b"\xff\xff")()


@given(st.binary(max_size=12))
def test_bytes_are_text_where_python_reads_them_as_such(text: bytes) -> None:
    lookup = BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=CommandLookupTopic(topic="x" * len(text), request_id=1))
    assert is_readable(lookup.SerializeToString().replace(b"x" * len(text), text)) == _is_text(text)


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_a_command_longer_than_is_taken_is_refused_by_name() -> None:
    lookup = BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=CommandLookupTopic(topic="x" * 100, request_id=1))
    frame = encode(lookup, b"payload")
    size = len(lookup.SerializeToString())
    found = next_frame(frame, 0, len(frame), 1000, size)
    assert found is not None
    assert bytes(found.payload) == b"payload"
    with pytest.raises(MalformedCommand, match=f"LOOKUP of {size} bytes without its payload, more than the {size - 1} that"):
        next_frame(frame, 0, len(frame), 1000, size - 1)
    with pytest.raises(MalformedCommand, match="command of 6 bytes without its payload, more than the 5 that are taken"):
        next_frame(b"\0\0\0\x0a\0\0\0\x06\x32\0\x08\x06\0\0", 0, 14, 1000, 5)


def test_endless_nesting_is_refused() -> None:
    inner = b""
    for _ in range(300):
        inner = b"\x08\x01\x10\x01\x3a" + bytes([len(inner) & 127 | 128, len(inner) >> 7]) + inner
    body = b"\x08\x01\x10\x01\x1a" + bytes([len(inner) & 127 | 128, len(inner) >> 7]) + inner
    with pytest.raises(MalformedCommand, match="unreadable"):
        decode_command(b"\x08\x1c\xe2\x01" + bytes([len(body) & 127 | 128, len(body) >> 7]) + body)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_good_command_or_a_remote_error(encoded: bytes) -> None:
    try:
        command = decode_command(encoded)
    except RemoteError:
        return
    assert command.IsInitialized()


def test_our_own_command_without_a_required_field_is_a_bug() -> None:
    with pytest.raises(EncodeError):
        encode(BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=CommandLookupTopic(topic="t")))


def test_ping_and_pong_are_what_apache_sends() -> None:
    assert PING.hex() == "0000000900000005081292" + "0100"
    assert PONG.hex() == "000000090000000508139a" + "0100"


def test_unknown_fields_of_newer_clients_are_no_mistake() -> None:
    command = BaseCommand.FromString(CONNECT[8:])
    newer = command.SerializeToString()[:-2] + b"\x20\x15"
    body = newer[4:] + b"\xf8\x07\x01"
    decode_command(b"\x08\x02\x12" + bytes([len(body)]) + body)
