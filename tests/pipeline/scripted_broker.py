"""A broker of a few lines for the reader's tests: entries that a test gives it, on a real socket; its mistakes are scripted.

It shows nothing about real brokers; those are asked elsewhere.
"""

import socket
from collections.abc import Mapping

from tests.pipeline.scripted_server import ScriptedServer
from wire.frames import encode, next_frame
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandConnected,
    CommandError,
    CommandLookupTopicResponse,
    CommandMessage,
    CommandPing,
    CommandSuccess,
    MessageIdData,
    ServerError,
)

PING = encode(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))


class ScriptedBroker(ScriptedServer):
    """`entries` by (ledger, entry). `cuts`: how many entries each connection delivers before it ends, None for all of them.

    `token`: what CONNECT has to bring. Connections are served one after the other, and `starts` tells where each began.
    """

    def __init__(self, entries: Mapping[tuple[int, int], bytes], cuts: list[int | None] | None = None, token: str = "") -> None:
        super().__init__()
        self.entries, self.token = entries, token
        self.cuts: list[int | None] = cuts or []
        self.starts: list[tuple[int, int]] = []
        self.url = f"pulsar://{self.address}"

    def _talk(self, connection: socket.socket) -> None:
        buffer = b""
        while data := connection.recv(1 << 16):
            buffer += data
            while (frame := next_frame(buffer, 0, len(buffer))) is not None:
                buffer = buffer[frame.end :]
                if not self._answer(connection, frame.command):
                    return

    def _answer(self, connection: socket.socket, command: BaseCommand) -> bool:
        """Whether the connection goes on."""
        match command.type:
            case BaseCommand.CONNECT if command.connect.auth_data.decode() != self.token:
                refusal = CommandError(request_id=0, error=ServerError.AuthenticationError, message="wrong token")
                connection.sendall(encode(BaseCommand(type=BaseCommand.ERROR, error=refusal)))
                return False
            case BaseCommand.CONNECT:
                connected = CommandConnected(server_version="scripted")
                connection.sendall(PING + encode(BaseCommand(type=BaseCommand.CONNECTED, connected=connected)))
            case BaseCommand.LOOKUP:
                found = CommandLookupTopicResponse(
                    broker_service_url=self.url,
                    response=CommandLookupTopicResponse.Connect,
                    request_id=command.lookup_topic.request_id,
                    authoritative=True,
                )
                response = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookup_topic_response=found)
                connection.sendall(encode(response))
            case BaseCommand.SUBSCRIBE:
                return self._deliver(connection, command)
        return True

    def _deliver(self, connection: socket.socket, command: BaseCommand) -> bool:
        asked = command.subscribe.start_message_id
        start = (asked.ledger_id, asked.entry_id)
        self.starts.append(start)
        success = CommandSuccess(request_id=command.subscribe.request_id)
        connection.sendall(encode(BaseCommand(type=BaseCommand.SUCCESS, success=success)))
        cut = self.cuts.pop(0) if self.cuts else None
        wanted = sorted(place for place in self.entries if place >= start)
        connection.sendall(b"".join(PING + self._message(place) for place in wanted[:cut]))
        if cut is None:
            return True
        closed = CommandCloseConsumer(consumer_id=1, request_id=0)
        connection.sendall(encode(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=closed)))
        return False

    def _message(self, place: tuple[int, int]) -> bytes:
        message = CommandMessage(consumer_id=1, message_id=MessageIdData(ledger_id=place[0], entry_id=place[1]))
        return encode(BaseCommand(type=BaseCommand.MESSAGE, message=message), self.entries[place])
