"""Chunks as no client sends them, for tests: those of a message from some number on, over the pipeline's own connection."""

from collections.abc import Sequence

from pipeline.pyspark_pulsar.client.brokers import connection_to
from tests.clients.server_process import Ready
from tests.pipeline.sections import metadata
from tests.pipeline.written_topics import access
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandProducer, CommandSend
from wire.payloads import payload_section


def send_chunks(server: Ready, topic: str, payloads: Sequence[bytes], first: int = 0, sequence_id: int = 7) -> None:
    """Sends the chunks from `first` on of one message whose chunks have these payloads. They are stored when it returns."""
    connection = connection_to(topic, access(server))
    try:
        asked = CommandProducer(topic=topic, producer_id=1, request_id=connection.request_id(), producer_name="c")
        connection.ask(BaseCommand(type=BaseCommand.PRODUCER, producer=asked), BaseCommand.PRODUCER_SUCCESS)
        for number, payload in enumerate(payloads):
            if number >= first:
                about = metadata(
                    sequence_id, producer="c", uuid=f"c-{sequence_id}", num_chunks_from_msg=len(payloads), chunk_id=number
                )
                about.total_chunk_msg_size = sum(len(each) for each in payloads)
                send = CommandSend(producer_id=1, sequence_id=sequence_id, num_messages=1)
                connection.send(BaseCommand(type=BaseCommand.SEND, send=send), payload_section(about, payload))
                while connection.command().type != BaseCommand.SEND_RECEIPT:
                    continue
    finally:
        connection.close()
