"""delayedDeliveryMaxDelayInMillis: a message that is to be delivered later than that is refused, and its neighbours are not."""

import pytest

from tests.broker.connection.peer import a_peer, play, send, settle
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata
from wire.payloads import payload_section

PUBLISHED_MS = 1_700_000_000_000
NEVER = (1 << 63) - 1


def delayed(deliver_at_ms: int | None) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=PUBLISHED_MS)
    if deliver_at_ms is not None:
        metadata.deliver_at_time = deliver_at_ms
    return payload_section(metadata, b"text")


@pytest.mark.parametrize("too_late", [PUBLISHED_MS + 60_001, NEVER, 253_402_300_799_000])
def test_a_message_beyond_the_longest_delay_is_refused_its_neighbours_are_not(too_late: int) -> None:
    times = (None, PUBLISHED_MS + 60_000, too_late, -1, -(1 << 63))

    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.delay_ms_max = 60_000
            peer.feed(b"".join(encode(send(1, index), delayed(time)) for index, time in enumerate(times)))
            await settle()
            answers = peer.answers()
            refused = [command.send_error for command in answers if command.type == BaseCommand.SEND_ERROR]
            assert [error.sequence_id for error in refused] == [2]
            assert refused[0].error == api.NotAllowedError
            assert refused[0].message == "Exceeds max allowed delivery delay of 60000 milliseconds"
            assert len(answers) == len(times)

    play(scenario)
