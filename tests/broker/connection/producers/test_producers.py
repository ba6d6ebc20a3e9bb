"""Producers of one connection: names, duplicates, closing, and what of them goes on when."""

import asyncio

import pytest

from broker.connection.producers.sends import one_by_one
from broker.errors import BrokerError, ServerError
from broker.topic.contract import AccessMode
from tests.broker.connection.peer import TOPIC, a_peer, message, play, producer, send, settle
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand


def close(producer_id: int = 1, request_id: int = 40) -> BaseCommand:
    asked = api.CommandCloseProducer(producer_id=producer_id, request_id=request_id)
    return BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=asked)


def test_the_topic_is_asked_for_what_the_client_said() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce(
                3,
                producer_name="me",
                epoch=4,
                user_provided_producer_name=True,
                producer_access_mode=api.Exclusive,
                topic_epoch=0,
                encrypted=True,
                metadata=[api.KeyValue(key="a", value="b")],
                initial_subscription_name="dlq",
            )
            asked = taken.request
            assert (asked.producer_id, asked.name, asked.name_is_generated, asked.epoch) == (3, "me", False, 4)
            assert (asked.access_mode, asked.topic_epoch, asked.is_encrypted) == (AccessMode.EXCLUSIVE, 0, True)
            assert (asked.metadata, asked.initial_subscription_name) == ({"a": "b"}, "dlq")
            assert (asked.address, asked.client_version) == ("10.0.0.9:40001", "test")

    play(scenario)


def test_names_are_given_once_and_a_client_that_comes_back_with_one_says_that_it_was_given() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            first, second = await peer.produce(1), await peer.produce(2)
            assert (first.name, second.name) == ("standalone-0-0", "standalone-0-1")
            assert first.request.name_is_generated
            again = await peer.produce(3, producer_name=first.name, user_provided_producer_name=False)
            assert again.request.name_is_generated

    play(scenario)


def test_a_second_producer_command_is_told_to_wait_or_answered_like_the_first() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(producer(1, request_id=1))
            peer.send(producer(1, request_id=2))
            await settle()
            refused, accepted = peer.answers()
            assert (refused.error.request_id, refused.error.error) == (2, api.ServiceNotReady)
            assert accepted.producer_success.request_id == 1
            again = (await peer.ask(producer(1, request_id=3))).producer_success
            assert (again.request_id, again.producer_name) == (3, accepted.producer_success.producer_name)
            assert len(peer.topic().producers) == 1

    play(scenario)


def test_a_refused_producer_may_try_again() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            peer.topic().failure = BrokerError(ServerError.PRODUCER_BUSY, "there is one of that name")
            found = (await peer.ask(producer(1, request_id=1))).error
            assert (found.error, found.message) == (api.ProducerBusy, "there is one of that name")
            peer.topic().failure = None
            await peer.produce(1)

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "definition", "version"),
    [
        ("NoSchema", b"", bytes(8)),
        ("String", b"", bytes(8)),
        ("Json", b'{"type":"record","name":"R","fields":[]}', bytes(8)),
        ("Json", b"", None),
        ("KeyValue", b"\0", None),
        ("ProtobufNative", b"{}", None),
        ("Int32", b"what", None),
    ],
)
def test_a_producer_is_told_the_version_of_its_schema_and_what_is_none_is_refused(
    kind: str, definition: bytes, version: bytes | None
) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            schema = api.Schema(name="s", schema_data=definition, type=kind)
            found = await peer.ask(producer(schema=schema))
            if version is None:
                assert found.error.error == api.IncompatibleSchema
            else:
                assert found.producer_success.schema_version == version

    play(scenario)


def test_a_failure_that_nobody_foresaw_is_told_as_unknown() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.topics.failures.append(ZeroDivisionError("secret"))
            found = (await peer.ask(producer())).error
            assert (found.error, "secret" in found.message) == (api.UnknownError, False)
            await peer.produce()

    play(scenario)


def test_closing_is_answered_after_the_last_receipt() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.send(send(1, 0), message())
            peer.send(close())
            await settle()
            assert (peer.answers(), taken.is_closed) == ([], False)
            taken.release()
            await settle()
            assert [command.type for command in peer.answers()] == [BaseCommand.SEND_RECEIPT, BaseCommand.SUCCESS]
            assert taken.is_closed

    play(scenario)


def test_closing_a_producer_that_is_not_there_succeeds() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            assert (await peer.ask(close(77, 0))).success.HasField("request_id")

    play(scenario)


def test_closing_while_the_topic_ends_is_answered_too() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.send(send(1, 0), message())
            peer.send(close())
            taken.sink.closed("unloaded")
            taken.sink.send_failed(taken.unanswered[0], ServerError.SERVICE_NOT_READY, "closed")
            assert (await peer.answer()).success.request_id == 40

    play(scenario)


def test_a_producer_closed_while_it_was_pending_does_not_stay_on_the_topic() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            wait = peer.topic().wait = asyncio.Event()
            peer.send(producer(1))
            await settle()
            assert (await peer.ask(close(1))).type == BaseCommand.SUCCESS
            wait.set()
            await settle()
            assert (peer.answers(), peer.topic().producers[-1].is_closed) == ([], True)

    play(scenario)


def test_a_client_that_leaves_while_its_producer_is_pending_leaves_nothing_on_the_topic() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            wait = peer.topic().wait = asyncio.Event()
            peer.send(producer(1))
            await settle()
            peer.transport.close()
            await settle()
            wait.set()
            await settle()
            assert [each.is_closed for each in peer.topic().producers] == [True, True]

    play(scenario)


def test_failures_after_the_end_of_a_producer_are_not_told() -> None:
    """The client sends again what was not answered; a Go client would close the connection on the error."""

    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.send(send(1, 0), message())
            taken.sink.closed("unloaded")
            taken.sink.send_failed(taken.unanswered[0], ServerError.SERVICE_NOT_READY, "closed")
            assert (await peer.answer()).type == BaseCommand.CLOSE_PRODUCER
            again = await peer.produce()
            peer.send(send(1, 0), message())
            assert (await peer.answer()).type == BaseCommand.SEND_RECEIPT
            assert again.payloads == [message()]

    play(scenario)


def test_a_failed_run_fails_each_of_its_messages() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.feed(b"".join(encode(send(1, index), message()) for index in range(3)))
            taken.sink.send_failed(taken.unanswered[0], ServerError.PERSISTENCE, "disk")
            await settle()
            errors = [command.send_error for command in peer.answers()]
            assert [(each.sequence_id, each.error) for each in errors] == [(index, api.PersistenceError) for index in range(3)]

    play(scenario)


def test_a_read_of_many_sends_is_one_run_and_one_write() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            before = peer.transport.writes
            peer.feed(b"".join(encode(send(1, index), message()) for index in range(500)))
            await settle()
            assert [run.entries.count for run in taken.runs] == [500]
            assert peer.transport.writes == before + 1
            assert [command.send_receipt.sequence_id for command in peer.answers()] == list(range(500))

    play(scenario)


def test_a_topic_with_other_room_for_headers_gets_what_it_needs() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(1)
            other = await peer.produce(2, topic=f"{TOPIC}2")
            other.topic.header_bytes = 52
            peer.send(producer(3, f"{TOPIC}2"))
            await settle()
            peer.frames()
            peer.feed(b"".join(encode(send(each, 0), message(b"%d" % each)) for each in (1, 3, 1, 3)))
            await settle()
            assert len(peer.answers()) == 4
            third = peer.topic(f"{TOPIC}2").producers[-1]
            assert [run.entries.header_bytes for run in third.runs] == [52, 52]
            assert third.payloads == [message(b"3"), message(b"3")]
            assert peer.topic().producers[0].payloads == [message(b"1"), message(b"1")]

    play(scenario)


def type_last(told: api.CommandSend, payload: bytes) -> bytes:
    """Legal, but not how any client writes it: the kernel leaves it."""
    body = told.SerializeToString()
    command = b"\x32" + bytes([len(body)]) + body + b"\x08\x06"
    frame = len(command).to_bytes(4) + command + payload
    return len(frame).to_bytes(4) + frame


def test_oddly_encoded_sends_are_stored_like_plain_ones() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            told = api.CommandSend(producer_id=1, sequence_id=8, is_chunk=True, highest_sequence_id=9, num_messages=2)
            peer.feed(type_last(told, message()))
            found = (await peer.answer()).send_receipt
            assert (found.sequence_id, found.highest_sequence_id) == (8, 9)
            assert taken.payloads == [message()]
            assert (taken.runs[0].entries.message_count, taken.runs[0].flags) == (2, 2)
            peer.feed(type_last(told, message()[:-1] + b"?"))
            assert (await peer.answer()).send_error.error == api.ChecksumError
            assert len(taken.runs) == 1

    play(scenario)


def test_a_run_that_is_answered_in_parts_is_answered_when_all_of_them_are() -> None:
    """Deduplication answers in parts where some messages of a run were stored before."""

    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce(1)
            taken.is_held = True
            peer.feed(b"".join(encode(send(1, index), message()) for index in range(3)))
            peer.send(close())
            (run,) = taken.unanswered
            for part in one_by_one(run):
                assert not taken.is_closed
                taken.sink.receipts(part, peer.topic().store(part))
                await settle()
            assert taken.is_closed
            answers = peer.answers()
            assert [answer.send_receipt.sequence_id for answer in answers[:3]] == [0, 1, 2]
            assert answers[3].success.request_id == 40

    play(scenario)
