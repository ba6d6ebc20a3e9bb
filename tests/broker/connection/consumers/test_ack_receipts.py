"""Answers to acknowledgements that ask for a receipt, and effects of those that ask for none."""

from tests.broker.connection.peer import a_peer, ack, play, settle
from wire.frames import encode


def test_an_ack_is_answered_when_it_is_stored_and_not_before() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.acknowledgements_gate.clear()
            peer.send(ack(1, (7, 4), request_id=1))
            await settle()
            assert peer.answers() == []
            assert len(consumer.acks) == 1, "it is in effect at once"
            consumer.acknowledgements_gate.set()
            await settle()
            assert [found.ack_response.request_id for found in peer.answers()] == [1]

    play(scenario)


def test_acks_of_changing_consumers_reach_each_of_them() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            first, second = await peer.consume(1), await peer.consume(2)
            peer.feed(b"".join(encode(ack(1 + index % 3, (7, index))) for index in range(5)) + encode(ack(2, (7, 9))))
            assert [list(run.entry_ids) for run in first.ack_runs] == [[0], [3]]
            assert [list(run.entry_ids) for run in second.ack_runs] == [[1], [4, 9]]

    play(scenario)
