"""wire.kernels.acks: ACK frames to runs, compiled and not."""

from array import array
from types import ModuleType

import pytest

from tests.wire.both_kernels import both
from tests.wire.frame_samples import ack, frame, send
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck
from wire.run import AckRun

BOTH = pytest.mark.parametrize("acks", both("acks"), ids=["plain", "installed"])
BIG = (1 << 64) - 1


def take(acks: ModuleType, data: bytes) -> AckRun | None:
    run: AckRun | None = acks.take_acks(data, 0, len(data))
    return run


def odd_ack(**fields: int) -> CommandAck:
    command = CommandAck(consumer_id=1, ack_type=CommandAck.Individual, **fields)  # type: ignore[arg-type]
    command.message_id.add(ledger_id=1, entry_id=1)
    return command


def framed(command: CommandAck) -> bytes:
    return frame(BaseCommand(type=BaseCommand.ACK, ack=command))


def with_ack_set() -> CommandAck:
    command = odd_ack()
    command.message_id.add(ledger_id=1, entry_id=2, ack_set=[1])
    return command


def with_first_chunk() -> CommandAck:
    command = odd_ack()
    command.message_id[0].first_chunk_message_id.ledger_id = 1
    command.message_id[0].first_chunk_message_id.entry_id = 0
    return command


@BOTH
def test_consecutive_acks_of_one_consumer_become_one_run(acks: ModuleType) -> None:
    data = ack(9, [(1, 2)]) + ack(9, [(1, 3), (2, 0), (BIG, BIG)]) + ack(9, [(5, 300)])
    run = take(acks, data)
    assert run is not None
    assert (run.consumer_id, run.end) == (9, len(data))
    assert run.ledger_ids == array("Q", [1, 1, 2, BIG, 5])
    assert run.entry_ids == array("Q", [2, 3, 0, BIG, 300])


@BOTH
def test_a_run_ends_at_another_consumer_another_command_or_an_unfinished_frame(acks: ModuleType) -> None:
    one = ack(1, [(1, 2)])
    for follower in (ack(2, [(1, 2)]), send(1, 1), one[:-1], b""):
        run = take(acks, one + follower)
        assert run is not None
        assert run.end == len(one)
    for cut in range(len(one)):
        assert take(acks, one[:cut]) is None


@BOTH
def test_partition_batch_index_and_batch_size_do_not_make_an_ack_partial(acks: ModuleType) -> None:
    command = odd_ack()
    command.message_id.add(ledger_id=3, entry_id=4, partition=-1, batch_index=-1, batch_size=7)
    run = take(acks, framed(command))
    assert run is not None
    assert list(run.entry_ids) == [1, 4]


@BOTH
@pytest.mark.parametrize(
    "command",
    [
        odd_ack(request_id=0),
        odd_ack(txnid_least_bits=0),
        odd_ack(txnid_most_bits=1),
        odd_ack(validation_error=2),
        CommandAck(consumer_id=1, ack_type=CommandAck.Cumulative, message_id=odd_ack().message_id),
        CommandAck(consumer_id=1, ack_type=CommandAck.Individual),
        CommandAck(
            consumer_id=1,
            ack_type=CommandAck.Individual,
            message_id=odd_ack().message_id,
            properties=[{"key": "k", "value": 1}],
        ),
        with_ack_set(),
        with_first_chunk(),
    ],
)
def test_an_ack_that_is_not_plain_is_left_to_the_slow_path(acks: ModuleType, command: CommandAck) -> None:
    data = framed(command)
    assert take(acks, data) is None
    plain = ack(1, [(1, 2)])
    run = take(acks, plain + data + plain)
    assert run is not None
    assert (run.end, list(run.entry_ids)) == (len(plain), [2])


@BOTH
def test_an_ack_with_bytes_after_its_command_is_left_to_the_slow_path(acks: ModuleType) -> None:
    command = BaseCommand(type=BaseCommand.ACK, ack=odd_ack())
    assert take(acks, frame(command, b"x")) is None


def take_mix(acks: ModuleType, data: bytes, frames_max: int = 100) -> tuple[list[tuple[int, int, int]], int] | None:
    mix = acks.take_ack_mix(data, 0, len(data), frames_max)
    return None if mix is None else (list(zip(mix.consumer_ids, mix.ledger_ids, mix.entry_ids, strict=True)), mix.end)


@BOTH
def test_acks_of_changing_consumers_become_a_mix(acks: ModuleType) -> None:
    frames = [ack(9, [(1, 2)]), ack(8, [(BIG, BIG)]), ack(9, [(1, 3)])]
    data = b"".join(frames)
    assert take_mix(acks, data) == ([(9, 1, 2), (8, BIG, BIG), (9, 1, 3)], len(data))
    assert take_mix(acks, data, 2) == ([(9, 1, 2), (8, BIG, BIG)], len(frames[0] + frames[1]))
    assert take_mix(acks, data, 1) == ([(9, 1, 2)], len(frames[0]))
    for follower in (send(1, 1), frames[0][:-1], b"", ack(7, [(1, 1), (1, 2)]), framed(with_ack_set())):
        assert take_mix(acks, data + follower) == take_mix(acks, data)
    for cut in range(len(frames[0])):
        assert take_mix(acks, data[:cut]) is None


@BOTH
def test_several_acks_of_one_consumer_are_left_for_a_run(acks: ModuleType) -> None:
    twice = ack(1, [(1, 2)]) + ack(1, [(1, 3)])
    assert take_mix(acks, twice) is None
    assert take_mix(acks, ack(1, [(1, 2), (1, 3)])) is None
    before = ack(2, [(1, 2)])
    for frames_max in (1, 2, 3):
        assert take_mix(acks, before + twice, frames_max) == ([(2, 1, 2)], len(before))


@BOTH
@pytest.mark.parametrize("command", [odd_ack(request_id=0), with_ack_set(), with_first_chunk()])
def test_an_ack_that_is_not_plain_ends_a_mix(acks: ModuleType, command: CommandAck) -> None:
    plain = ack(7, [(1, 2)])
    assert take_mix(acks, framed(command) + plain) is None
    assert take_mix(acks, plain + framed(command) + plain) == ([(7, 1, 2)], len(plain))
