"""wire.kernels.messages: runs to MESSAGE frames, compiled and not."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from tests.wire.frame_samples import stored, unframe
from wire.generated.pulsar_api_pb2 import CommandMessage
from wire.run import EntryRun

PLAIN, INSTALLED = both("messages")
BOTH = pytest.mark.parametrize("messages", [PLAIN, INSTALLED], ids=["plain", "installed"])
U64 = st.integers(0, (1 << 64) - 1)


def delivered(
    messages: ModuleType,
    payloads: Sequence[bytes],
    indexes: range | Sequence[int],
    *,
    consumer_id: int = 1,
    partition: int = -1,
    counts: Sequence[int] | None = None,
    ack_sets: Mapping[int, Sequence[int]] | None = None,
    epoch: int | None = None,
    **options: bool,
) -> list[tuple[CommandMessage, bytes]]:
    run = stored(payloads, ledger_id=1 << 33, first_entry_id=126)
    frames = messages.message_frames(run, indexes, consumer_id, partition, counts, ack_sets, epoch, **options)
    assert type(frames) is bytes
    return [(command.message, rest) for command, rest in unframe(frames)]


@BOTH
def test_a_range_of_a_run_is_delivered_in_order(messages: ModuleType) -> None:
    found = delivered(messages, [b"zero", b"one", b"two", b"three"], range(1, 3), consumer_id=300)
    assert [rest for _, rest in found] == [b"one", b"two"]
    assert [(m.consumer_id, m.message_id.ledger_id, m.message_id.entry_id) for m, _ in found] == [
        (300, 1 << 33, 127),
        (300, 1 << 33, 128),
    ]
    assert not any(m.HasField("redelivery_count") or m.HasField("consumer_epoch") or m.ack_set for m, _ in found)
    assert not any(m.message_id.HasField("partition") for m, _ in found)


@BOTH
def test_any_indexes_in_any_order(messages: ModuleType) -> None:
    payloads = [bytes([i]) for i in range(9)]
    for indexes in ([8, 0, 3, 3], range(8, 0, -3), range(0), ()):
        assert [rest for _, rest in delivered(messages, payloads, indexes)] == [payloads[i] for i in indexes]


@BOTH
def test_redelivery_counts_ack_sets_partition_and_epoch(messages: ModuleType) -> None:
    found = delivered(
        messages, [b"a", b"b", b"c"], [2, 1, 0], partition=5, counts=[0, 1, 300], ack_sets={1: [-1, 7], 0: []}, epoch=0
    )
    assert [m.redelivery_count for m, _ in found] == [0, 1, 300]
    assert [m.HasField("redelivery_count") for m, _ in found] == [False, True, True]
    assert [list(m.ack_set) for m, _ in found] == [[], [-1, 7], []]
    assert all(m.message_id.partition == 5 and m.HasField("consumer_epoch") and m.consumer_epoch == 0 for m, _ in found)


@BOTH
def test_broker_entry_metadata_is_cut_off_unless_it_is_wanted(messages: ModuleType) -> None:
    block = b"\x0e\x02\0\0\0\3abc"
    payloads = [block + b"rest", block, block[:-1], block[:5], b"", b"\x0e\x02\xff\xff\xff\xff"]
    cut = [rest for _, rest in delivered(messages, payloads, range(6))]
    assert cut == [b"rest", b"", block[:-1], block[:5], b"", payloads[5]]
    kept = delivered(messages, payloads, range(6), keep_broker_entry_metadata=True)
    assert [rest for _, rest in kept] == payloads


@BOTH
def test_a_frame_is_what_apaches_broker_writes(messages: ModuleType) -> None:
    frame = messages.message_frames(stored([b""], 1, 2), [0], 9, 3, [4], {0: [-1, 5]}, 6)
    golden = "08094a1b08091206080110021803180420ffffffffffffffffff0120052806"  # Commands.newMessageCommand(9,1,2,3,4,[-1,5],6)
    assert frame[8:] == bytes.fromhex(golden)


@BOTH
@pytest.mark.parametrize("indexes", [[3], [-1], range(4), range(-1, 1)])
def test_an_index_outside_the_run_is_refused(messages: ModuleType, indexes: Sequence[int]) -> None:
    with pytest.raises(IndexError):
        delivered(messages, [b"a", b"b", b"c"], indexes)


@BOTH
@pytest.mark.parametrize("offsets", [[0, 35], [0, 101], [10, 5]])
def test_offsets_beyond_the_buffer_are_refused(messages: ModuleType, offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="fit"):
        messages.message_frames(EntryRun(1, 0, bytes(100), array("I", offsets)), range(1), 1, -1, None, None, None)


@BOTH
def test_redelivery_counts_must_be_parallel(messages: ModuleType) -> None:
    with pytest.raises(ValueError, match="redelivery"):
        delivered(messages, [b"a", b"b"], range(2), counts=[1])


@BOTH
def test_a_slice_of_a_run_is_delivered_with_its_own_ids(messages: ModuleType) -> None:
    run = stored([b"a", b"b", b"c"], 1, 10).entries(11, 2)
    found = unframe(messages.message_frames(run, range(2), 1, -1, None, None, None))
    assert [(c.message.message_id.entry_id, rest) for c, rest in found] == [(11, b"b"), (12, b"c")]


@given(st.data(), U64, st.integers(0, (1 << 63) - 1), st.integers(0, 1 << 62), st.integers(-1, 1 << 30), st.none() | U64)
def test_compiled_plain_and_protobuf_agree(
    data: Any, consumer_id: int, ledger_id: int, first: int, partition: int, epoch: int | None
) -> None:
    payloads = data.draw(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
    indexes = data.draw(st.lists(st.integers(0, len(payloads) - 1), max_size=6))
    counts = data.draw(st.none() | st.lists(st.integers(0, 1 << 31), min_size=len(indexes), max_size=len(indexes)))
    words = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3)
    ack_sets = data.draw(st.none() | st.dictionaries(st.integers(0, len(payloads) - 1), words))
    arguments = (indexes, consumer_id, partition, counts, ack_sets, epoch, True)
    run = stored(payloads, ledger_id, first)
    frames = INSTALLED.message_frames(run, *arguments)
    assert frames == PLAIN.message_frames(run, *arguments)
    found = unframe(frames)
    assert [rest for _, rest in found] == [payloads[i] for i in indexes]
    for place, (command, _) in enumerate(found):
        message = command.message
        assert (message.consumer_id, message.message_id.ledger_id) == (consumer_id, ledger_id)
        assert message.message_id.entry_id == first + indexes[place]
        assert message.message_id.partition == partition
        assert message.redelivery_count == (counts[place] if counts else 0)
        assert list(message.ack_set) == list((ack_sets or {}).get(indexes[place], []))
        assert (message.consumer_epoch if message.HasField("consumer_epoch") else None) == epoch


@BOTH
def test_non_persistent_messages_have_no_id_of_their_own(messages: ModuleType) -> None:
    run = replace(stored([b"a", b"b", b"c"], ledger_id=7, first_entry_id=126), is_passing=True)
    for part in (run, run.entries(127, 2)):
        frames = unframe(messages.message_frames(part, range(part.count), 1, 2, None, None, None))
        ids = [command.message.message_id for command, _ in frames]
        assert [(each.ledger_id, each.entry_id, each.partition) for each in ids] == [(0, 0, 2)] * part.count
