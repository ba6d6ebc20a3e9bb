"""encryption_required: a message that names no encryption keys is refused, and its neighbours are not (Apache: Producer)."""

from tests.broker.connection.peer import a_peer, play, send, settle
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata
from wire.payloads import payload_section


def message(*, is_encrypted: bool) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)
    if is_encrypted:
        metadata.encryption_keys.add(key="k", value=b"v")
    return payload_section(metadata, b"text")


def test_only_unencrypted_messages_are_refused_and_only_if_encryption_is_required() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            for is_required, refused in ((False, []), (True, [1, 4])):
                taken.is_encryption_required = is_required
                kinds = (True, False, True, True, False)
                sent = (encode(send(1, index), message(is_encrypted=kind)) for index, kind in enumerate(kinds))
                peer.feed(b"".join(sent))
                await settle()
                answers = peer.answers()
                errors = [command.send_error for command in answers if command.type == BaseCommand.SEND_ERROR]
                assert [error.sequence_id for error in errors] == refused
                assert all(error.error == api.MetadataError for error in errors)
                assert all(error.message == "Messages must be encrypted" for error in errors)
                receipts = [command.send_receipt for command in answers if command.type == BaseCommand.SEND_RECEIPT]
                assert [receipt.sequence_id for receipt in receipts] == [index for index in range(5) if index not in refused]

    play(scenario)
