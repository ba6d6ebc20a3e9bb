"""One message over REST, of whatever clients have written into it."""

from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.test_admin_cursors import filled
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import payload_section


def test_a_message_with_whatever_a_client_wrote_is_shown_and_what_is_none_is_not_our_failure() -> None:
    async def scenario(world: AdminWorld) -> None:
        odd = MessageMetadata(producer_name="a\x00b\r\nX: y ", sequence_id=(1 << 64) - 1, publish_time=(1 << 63) - 1)
        odd.event_time = odd.publish_time
        wrong = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, compression="LZ4", uncompressed_size=9)
        await filled(world, payload_section(odd, b"hello"), payload_section(wrong, b"hello"), b"\xff\xff\xff\xffabc")
        shown = await world.topic("GET", "t/ledger/3/entry/0")
        assert (shown.status, shown.body) == (200, b"hello")
        assert shown.headers["x-pulsar-producer-name"] == "a b  X: y"
        assert shown.headers["x-pulsar-publish-time"] == str((1 << 63) - 1)
        assert shown.headers["x-pulsar-sequence-id"] == "-1"
        for entry_id in (1, 2):
            status, reason = (await world.topic("GET", f"t/ledger/3/entry/{entry_id}")).refused
            assert (status, f"entry 3:{entry_id} " in reason) == (422, True)

    play(scenario)
