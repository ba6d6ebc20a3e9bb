"""The traps of the protocol that concern producers: where real clients hang, loop or close when an answer is wrong."""

from broker.errors import ServerError
from tests.broker.connection.peer import (
    a_peer,
    message,
    play,
    producer,
    send,
    settle,
)
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

# ---- 6, 7: receipts and send errors


def test_receipts_come_in_the_order_of_sends_and_echo_both_sequence_ids() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            for first in (0, 10, 20):
                peer.send(send(1, first, highest_sequence_id=first + 9, num_messages=10), message())
            taken.release()
            await settle()
            receipts = [command.send_receipt for command in peer.answers()]
            assert [(each.sequence_id, each.highest_sequence_id) for each in receipts] == [(0, 9), (10, 19), (20, 29)]
            assert [each.message_id.entry_id for each in receipts] == [0, 1, 2]

    play(scenario)


def broken(payload: bytes) -> bytes:
    return payload[:-1] + bytes([payload[-1] ^ 1])


def test_a_checksum_error_keeps_its_place_among_the_receipts() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.send(send(1, 0), message())
            peer.send(send(1, 1), broken(message()))
            peer.send(send(1, 2), message())
            await settle()
            assert peer.answers() == []
            taken.release(1)
            await settle()
            first, second = peer.answers()
            assert first.send_receipt.sequence_id == 0
            assert (second.send_error.sequence_id, second.send_error.error) == (1, api.ChecksumError)
            taken.release()
            assert (await peer.answer()).send_receipt.sequence_id == 2
            assert len(taken.payloads) == 2

    play(scenario)


def test_a_refused_message_gets_an_error_that_a_go_client_survives() -> None:
    """Any SEND_ERROR but NotAllowed and TopicTerminated makes it close the connection."""

    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce()
            message_id = api.MessageIdData(ledger_id=1, entry_id=1)
            for fields in ({"message_id": message_id}, {"num_messages": -3}):
                peer.send(send(1, 5, **fields), message())
                found = (await peer.answer()).send_error
                assert (found.producer_id, found.sequence_id, found.error) == (1, 5, api.NotAllowedError)

    play(scenario)


# ---- 8, 9: PRODUCER_SUCCESS


def test_the_last_sequence_id_is_minus_one_without_deduplication() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(producer())).producer_success
            assert found.HasField("last_sequence_id")
            assert found.last_sequence_id == -1
            assert found.producer_name == "standalone-0-0"
            assert found.producer_ready

    play(scenario)


def test_a_waiting_producer_gets_two_successes_for_one_request() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            peer.topic().producer_is_ready = False
            found = (await peer.ask(producer(1, request_id=77, producer_access_mode=api.WaitForExclusive))).producer_success
            assert (found.request_id, found.producer_ready) == (77, False)
            taken = peer.topic().producers[-1]
            taken.is_ready = True
            taken.sink.ready(4)
            found = (await peer.answer()).producer_success
            assert (found.request_id, found.producer_ready, found.topic_epoch) == (77, True, 4)
            peer.send(send(1, 0), message())
            assert (await peer.answer()).send_receipt.producer_id == 1

    play(scenario)


def test_a_waiting_producer_that_is_fenced_out_gets_an_error_for_its_request() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            peer.topic().producer_is_ready = False
            await peer.ask(producer(1, request_id=77))
            peer.topic().producers[-1].sink.refused(ServerError.PRODUCER_FENCED, "fenced")
            found = (await peer.answer()).error
            assert (found.request_id, found.error) == (77, api.ProducerFenced)

    play(scenario)


def test_a_message_that_was_refused_is_not_told_after_the_end_of_its_producer() -> None:
    """The client sends the message again with the other unanswered ones; it could give the error to no producer."""

    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.send(send(1, 0), message())
            peer.send(send(1, 1, num_messages=0), message())
            taken.sink.closed("fenced out")
            taken.release()
            await settle()
            assert [each.type for each in peer.answers() if each.type != BaseCommand.SEND_RECEIPT] == [
                BaseCommand.CLOSE_PRODUCER
            ]

    play(scenario)
