"""A connection to a broker that is alive and gives no answer: lost after its timeout, however many pings come."""

import socket
import time
from contextlib import closing

import pytest

from pipeline.pyspark_pulsar.client.connection import Connection, Lost
from pipeline.pyspark_pulsar.options import Access
from tests.pipeline.scripted_broker import PING
from tests.pipeline.scripted_server import ScriptedServer
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnected, CommandGetLastMessageId, CommandSuccess

GREETING = encode(BaseCommand(type=BaseCommand.CONNECTED, connected=CommandConnected(server_version="scripted")))
OF_NOBODY = encode(BaseCommand(type=BaseCommand.SUCCESS, success=CommandSuccess(request_id=99)))
QUESTION = BaseCommand(
    type=BaseCommand.GET_LAST_MESSAGE_ID, get_last_message_id=CommandGetLastMessageId(consumer_id=1, request_id=1)
)
TIMEOUT_SECONDS, PAUSE_SECONDS, FRAMES = 0.2, 0.02, 250


class SilentBroker(ScriptedServer):
    """Greets, and then sends only `frame`, for five seconds."""

    def __init__(self, frame: bytes, greeting: bytes = GREETING) -> None:
        super().__init__()
        self.url, self._frame, self._greeting = f"pulsar://{self.address}", frame, greeting

    def _talk(self, connection: socket.socket) -> None:
        connection.sendall(self._greeting)
        for _ in range(FRAMES):
            connection.sendall(self._frame)
            time.sleep(PAUSE_SECONDS)


def connected(broker: SilentBroker) -> Connection:
    return Connection(broker.url, Access(broker.url, "http://unused", timeout_seconds=TIMEOUT_SECONDS))


@pytest.mark.parametrize("frame", [PING, OF_NOBODY])
def test_an_answer_that_does_not_come_is_awaited_for_the_timeout(frame: bytes) -> None:
    with SilentBroker(frame) as broker, closing(connected(broker)) as connection:
        with pytest.raises(Lost, match="gave no answer within"):
            connection.ask(QUESTION, BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)
        with pytest.raises(Lost, match="gave no answer within"):
            list(connection.ask_all([QUESTION], BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE))


def test_a_receipt_is_awaited_for_the_timeout() -> None:
    lost = pytest.raises(Lost, match="gave no answer within")
    with SilentBroker(PING) as broker, closing(connected(broker)) as connection, lost:
        connection.command()


def test_a_broker_that_pings_and_does_not_greet_is_lost() -> None:
    with SilentBroker(PING, greeting=b"") as broker, pytest.raises(Lost, match="gave no answer within"):
        connected(broker)
