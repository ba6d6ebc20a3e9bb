"""Local reads: the bytes of requests and answers."""

import struct
from array import array

from wire.bookie.local_reads import ANSWER_HEAD_BYTES, Segment, decode_request, encode_answer, entries_within

TOKEN = bytes(range(16))


def request(*ranges: int, token: bytes = TOKEN, ledger_id: int = -7) -> bytes:
    return token + struct.pack(f"<q{len(ranges)}q", ledger_id, *ranges)


def test_a_request_names_a_ledger_and_ranges() -> None:
    assert decode_request(request(0, 5, 9, 10), TOKEN) == (-7, [(0, 5), (9, 10)])
    assert decode_request(request(), TOKEN) == (-7, [])


def test_a_request_with_another_token_is_no_request() -> None:
    assert decode_request(request(0, 5, token=bytes(16)), TOKEN) is None


def test_a_request_that_ends_within_a_range_or_before_the_ledger_is_no_request() -> None:
    assert decode_request(request(0, 5, 9), TOKEN) is None
    assert decode_request(request(0, 5)[:-1], TOKEN) is None
    assert decode_request(TOKEN + bytes(7), TOKEN) is None


def test_an_answer_has_the_heads_of_all_segments_before_their_offsets() -> None:
    segments = [Segment(1, 4096, 10, array("I", [0, 8, 20])), Segment(2, 1 << 40, 0, array("I", [4, 6]))]
    heads = struct.pack("<IIQq", 1, 2, 4096, 10) + struct.pack("<IIQq", 2, 1, 1 << 40, 0)
    answer = encode_answer(segments)
    assert answer == struct.pack("<I", 2) + heads + struct.pack("<5I", 0, 8, 20, 4, 6)
    assert len(answer) == ANSWER_HEAD_BYTES + sum(each.size_bytes for each in segments)


def test_a_segment_fills_the_room_that_is_left_with_entries() -> None:
    for entries in (1, 2, 100):
        size = Segment(0, 0, 0, array("I", range(entries + 1))).size_bytes
        assert entries_within(size) == entries
        assert entries_within(size - 1) == entries - 1
