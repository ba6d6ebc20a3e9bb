"""The client's end of a connection: frames in any pieces, its own commands answered, a silence judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.client_end import KEEP_ALIVE_SECONDS, ClientEnd, Credentials, Silence
from wire.errors import RemoteError
from wire.frames import PING, PONG, encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

CHALLENGE = encode(BaseCommand(type=BaseCommand.AUTH_CHALLENGE, auth_challenge=api.CommandAuthChallenge()))


def hello() -> api.CommandConnect:
    return api.CommandConnect(client_version="test", protocol_version=21)


def success(request_id: int, section: bytes = b"") -> bytes:
    return encode(BaseCommand(type=BaseCommand.SUCCESS, success=api.CommandSuccess(request_id=request_id)), section)


def command(data: bytes) -> BaseCommand:
    frame = next_frame(data, 0, len(data))
    assert frame is not None
    assert frame.end == len(data)
    return frame.command


@given(st.lists(st.one_of(st.just(PING), st.binary(max_size=40)), max_size=12), st.integers(1, 60))
def test_commands_come_out_whole_and_in_order_however_their_bytes_are_cut(parts: list[bytes], size: int) -> None:
    sections = [part for part in parts if part != PING]
    data = b"".join(part if part == PING else success(len(part), part) for part in parts)
    end, got, replies = ClientEnd(hello(), None, 0.0), list[bytes](), b""
    for at in range(0, len(data), size):
        end.feed(data[at : at + size], 0.0)
        got += [received.section for received in end.all_taken()]
        replies += end.take_replies()
    assert got == sections
    assert replies == PONG * parts.count(PING)
    assert end.beginning(8) == b""


def test_each_greeting_and_challenge_has_the_credentials_of_that_moment() -> None:
    secrets = iter((b"first", b"second"))
    end = ClientEnd(hello(), lambda: Credentials("token", next(secrets)), 0.0)
    assert command(end.greeting()).connect.auth_data == b"first"
    end.feed(CHALLENGE, 0.0)
    assert end.taken() is None
    proof = command(end.take_replies()).auth_response
    assert (proof.client_version, proof.response.auth_method_name, proof.response.auth_data) == ("test", "token", b"second")
    assert end.take_replies() == b""


def test_without_credentials_a_challenge_is_the_drivers() -> None:
    end = ClientEnd(hello(), None, 0.0)
    assert not command(end.greeting()).connect.HasField("auth_data")
    end.feed(CHALLENGE, 0.0)
    received = end.taken()
    assert received is not None
    assert received.command.type == BaseCommand.AUTH_CHALLENGE
    assert end.take_replies() == b""


def test_a_silent_broker_is_asked_once_and_lost_after_twice_the_time() -> None:
    end = ClientEnd(hello(), None, 0.0)
    times = [KEEP_ALIVE_SECONDS * each for each in (0.9, 1.0, 1.5, 2.0)]
    assert [end.look(now) for now in times] == [Silence.FINE, Silence.ASK, Silence.FINE, Silence.LOST]
    end.feed(PONG, times[-1])
    assert [end.look(times[-1] + now) for now in times] == [Silence.FINE, Silence.ASK, Silence.FINE, Silence.LOST]


def test_a_frame_beyond_the_bound_ends_the_connection_and_its_beginning_can_be_shown() -> None:
    end = ClientEnd(hello(), None, 0.0, 100)
    end.feed(success(1, bytes(200)), 0.0)
    with pytest.raises(RemoteError):
        end.taken()
    assert len(end.beginning(8)) == 8
    end.allow(1000)
    received = end.taken()
    assert received is not None
    assert received.section == bytes(200)


def test_requests_are_numbered_from_one() -> None:
    end = ClientEnd(hello(), None, 0.0)
    assert [end.request_id() for _ in range(3)] == [1, 2, 3]
