"""One message over REST, of whatever clients have written into it."""

import base64

from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.routes.topics.test_cursors import filled
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


def test_all_that_a_message_says_is_told_in_headers_with_apaches_capitals() -> None:
    """Java's client compares the name of the properties' letter by letter; the record is of Apache 4.0.8."""

    async def scenario(world: AdminWorld) -> None:
        whole = MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, partition_key="k", replicated_from="r")
        whole.event_time, whole.deliver_at_time, whole.highest_sequence_id = 2, 3, 9
        whole.num_messages_in_batch, whole.uuid, whole.chunk_id = 4, "u", 1
        whole.num_chunks_from_msg, whole.total_chunk_msg_size = 2, 100
        whole.schema_version, whole.ordering_key, whole.null_value = b"v", b"o", False
        whole.partition_key_b64_encoded, whole.null_partition_key, whole.marker_type = False, False, 5
        whole.replicate_to.extend(["x", "y"])
        whole.properties.add(key="a", value="ä")
        whole.txnid_most_bits, whole.txnid_least_bits = 1, 2
        await filled(world, payload_section(whole, b"hello"))
        shown = await world.topic("GET", "t/ledger/3/entry/0")
        told = {name: shown.headers[name.lower()] for name in shown.header_names if name.startswith("X-Pulsar-")}
        assert told == {
            "X-Pulsar-Message-ID": "3:0",
            "X-Pulsar-PROPERTY": '{"a": "\\u00e4"}',
            "X-Pulsar-batch-size": "5",
            "X-Pulsar-PROPERTY-TOTAL-CHUNKS": "2",
            "X-Pulsar-PROPERTY-CHUNK-ID": "1",
            "X-Pulsar-Is-Encrypted": "false",
            "X-Pulsar-publish-time": "1970-01-01T00:00:00.001Z",
            "X-Pulsar-event-time": "1970-01-01T00:00:00.002Z",
            "X-Pulsar-deliver-at-time": "1970-01-01T00:00:00.003Z",
            "X-Pulsar-num-batch-message": "4",
            "X-Pulsar-null-value": "false",
            "X-Pulsar-producer-name": "p",
            "X-Pulsar-sequence-id": "7",
            "X-Pulsar-replicated-from": "r",
            "X-Pulsar-replicated-to": "y",
            "X-Pulsar-partition-key": "k",
            "X-Pulsar-Base64-schema-version": base64.b64encode(b"v").decode(),
            "X-Pulsar-partition-key-b64-encoded": "false",
            "X-Pulsar-Base64-ordering-key": base64.b64encode(b"o").decode(),
            "X-Pulsar-marker-type": "5",
            "X-Pulsar-txnid-least-bits": "2",
            "X-Pulsar-txnid-most-bits": "1",
            "X-Pulsar-highest-sequence-id": "9",
            "X-Pulsar-uuid": "u",
            "X-Pulsar-num-chunks-from-msg": "2",
            "X-Pulsar-total-chunk-msg-size": "100",
            "X-Pulsar-chunk-id": "1",
            "X-Pulsar-null-partition-key": "false",
            "X-Pulsar-txn-aborted": "false",
            "X-Pulsar-txn-uncommitted": "false",
        }

    play(scenario)
