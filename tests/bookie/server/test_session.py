"""A peer's version is settled by its first frame that is not of version 3; a peer that stops in the middle is given up."""

import pytest

from bookie.server.session import Session
from tests.wire.bookie import bookie_samples
from wire.bookie.requests import Add, Read, StartTls
from wire.errors import MalformedCommand
from wire.generated import bookie_protocol_pb2 as api

VERSION3 = api.Request(
    header=api.BKPacketHeader(version=api.VERSION_THREE, operation=api.START_TLS, txnId=1),
    startTLSRequest=api.StartTLSRequest(),
).SerializeToString()
VERSION2 = bookie_samples.read(1, 0)[4:]


def test_a_peer_speaks_version_3_until_it_says_something_else() -> None:
    session = Session()
    assert session.version == 3
    assert isinstance(session.decode(VERSION3).operation, StartTls)
    assert session.version == 3
    assert isinstance(session.decode(VERSION2).operation, Read)
    assert session.version == 2


def test_a_peer_of_version_2_is_read_as_that_for_good() -> None:
    session = Session()
    session.decode(VERSION2)
    with pytest.raises(MalformedCommand):
        session.decode(VERSION3)


def test_frames_that_a_kernel_took_settle_version_2_too() -> None:
    session = Session()
    session.took_run()
    assert session.version == 2
    assert isinstance(session.decode(bookie_samples.add(1, 0)[4:]).operation, Add)
    assert session.version == 2


def tick(session: Session, half: int = 0, unsent: int = 0, *, is_reading: bool = True) -> str:
    return session.tick(half_frame_bytes=half, unsent_bytes=unsent, is_reading=is_reading)


def test_an_idle_peer_is_never_given_up() -> None:
    session = Session()
    assert [tick(session) for _ in range(5)] == [""] * 5


def test_a_peer_that_stops_in_the_middle_of_a_frame_is_given_up_a_tick_after_its_last_bytes() -> None:
    session = Session()
    session.heard()
    assert tick(session, half=7) == ""
    assert "nothing came of the rest of a frame" in tick(session, half=7)


def test_half_a_frame_may_lie_as_long_as_the_bookie_itself_does_not_read() -> None:
    session = Session()
    assert tick(session, half=7, is_reading=False) == ""


def test_a_peer_that_reads_no_answers_is_given_up_and_one_that_reads_slowly_is_not() -> None:
    slow, stuck = Session(), Session()
    assert [tick(slow, unsent=size) for size in (900, 800, 799)] == [""] * 3
    assert tick(stuck, unsent=900) == ""
    assert "read none of 900 bytes" in tick(stuck, unsent=900)


def test_answers_that_pile_up_further_are_a_sign_of_a_peer_that_does_not_read() -> None:
    session = Session()
    assert tick(session, unsent=100) == ""
    assert "read none of 5000 bytes" in tick(session, unsent=5000)
