"""When an acknowledgement that asks for a receipt is answered."""

from tests.broker.connection.peer import a_peer, ack, play, settle


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
