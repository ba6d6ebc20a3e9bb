"""Session: the commands that a peer may send, and its signs of life. Pure: a machine of facts in, verdicts out.

Order of life: nothing but PING and PONG before CONNECT; CONNECT once; then every command of a client. At each tick of the
keep-alive timer a peer that has not finished its handshake, or was silent since the last PING, is given up.
"""

from enum import Enum

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect

from .errors import ProtocolViolation

BROKER_PROTOCOL_VERSION = 21
_ENTRY_METADATA_VERSION = 18
_ALWAYS = frozenset({BaseCommand.PING, BaseCommand.PONG})
_FROM_BROKERS = frozenset(
    {
        BaseCommand.CONNECTED,
        BaseCommand.SEND_RECEIPT,
        BaseCommand.SEND_ERROR,
        BaseCommand.MESSAGE,
        BaseCommand.SUCCESS,
        BaseCommand.ERROR,
        BaseCommand.PRODUCER_SUCCESS,
        BaseCommand.PARTITIONED_METADATA_RESPONSE,
        BaseCommand.LOOKUP_RESPONSE,
        BaseCommand.CONSUMER_STATS_RESPONSE,
        BaseCommand.REACHED_END_OF_TOPIC,
        BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE,
        BaseCommand.ACTIVE_CONSUMER_CHANGE,
        BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        BaseCommand.GET_SCHEMA_RESPONSE,
        BaseCommand.AUTH_CHALLENGE,
        BaseCommand.ACK_RESPONSE,
        BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE,
        BaseCommand.NEW_TXN_RESPONSE,
        BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE,
        BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        BaseCommand.END_TXN_RESPONSE,
        BaseCommand.END_TXN_ON_PARTITION_RESPONSE,
        BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE,
        BaseCommand.TC_CLIENT_CONNECT_RESPONSE,
        BaseCommand.WATCH_TOPIC_LIST_SUCCESS,
        BaseCommand.WATCH_TOPIC_UPDATE,
        BaseCommand.TOPIC_MIGRATED,
    }
)


class Tick(Enum):
    """Actions of the driver at a tick."""

    NOTHING = "nothing"
    SEND_PING = "send ping"
    HANDSHAKE_UNFINISHED = "handshake not finished in time"
    PEER_SILENT = "no answer to PING"


class Session:
    """One peer's."""

    def __init__(self) -> None:
        self.is_connected = False
        self.protocol_version = 0
        self.client_version = ""
        self.knows_broker_entry_metadata = False
        self._was_heard = False
        self._awaits_answer = False

    def check(self, kind: int) -> None:
        """ProtocolViolation when a command of this type is not legal now."""
        if kind in _ALWAYS or (self.is_connected and kind not in _FROM_BROKERS and kind != BaseCommand.CONNECT):
            return
        if kind == BaseCommand.CONNECT and not self.is_connected:
            return
        name = BaseCommand.Type.Name(BaseCommand.Type.ValueType(kind))
        if kind in _FROM_BROKERS:
            raise ProtocolViolation(f"{name} is for brokers to send")
        raise ProtocolViolation(f"{name} {'a second time' if self.is_connected else 'before CONNECT'}")

    def connect(self, command: CommandConnect) -> int:
        """The handshake is done; the protocol version that both sides speak."""
        self.is_connected = True
        self.client_version = command.client_version[:256]
        self.protocol_version = max(0, min(BROKER_PROTOCOL_VERSION, command.protocol_version))
        is_new = self.protocol_version >= _ENTRY_METADATA_VERSION
        self.knows_broker_entry_metadata = is_new and command.feature_flags.supports_broker_entry_metadata
        return self.protocol_version

    def heard(self) -> None:
        """A whole frame has come."""
        self._was_heard = True

    def tick(self, *, is_reading: bool) -> Tick:
        """Once per keep-alive interval. While we ourselves do not read, silence says nothing about the peer."""
        if not self.is_connected:
            return Tick.HANDSHAKE_UNFINISHED
        heard, self._was_heard = self._was_heard or not is_reading, False
        if heard:
            self._awaits_answer = False
            return Tick.NOTHING
        if self._awaits_answer:
            return Tick.PEER_SILENT
        if self.protocol_version < 1:
            return Tick.NOTHING  # such a peer knows no PING
        self._awaits_answer = True
        return Tick.SEND_PING
