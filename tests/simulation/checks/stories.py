"""Story: a history for the checker, written by hand."""

from broker.topic.contract import SubscriptionType
from simulation.checks.checker import Checker
from simulation.checks.history import (
    AckAnswered,
    Acknowledged,
    AckSent,
    Connected,
    Delivered,
    DrainEnded,
    DrainStarted,
    LastMessageReported,
    Message,
    MessageId,
    MessageKey,
    Nacked,
    ProducerOpened,
    RoundTrip,
    SeekAsked,
    SeekDone,
    Sent,
    ServerStopped,
    SessionEnded,
    Stop,
    Subscribed,
)
from wire.position import Position

PRODUCER = 99


class Story:
    """Writes a history line by line: time passes by itself; message n is entry n of ledger 1; consumer n is on connection n."""

    def __init__(self, kind: SubscriptionType, consumers: int = 1, messages: int = 5, key: str = "") -> None:
        self.checker = Checker()
        self.kind = kind
        self.now = 0.0
        self.checker.handle(ProducerOpened(self.tick(), PRODUCER, "p"))
        self.messages = [Message(-1, MessageKey("p", number), key, b"p:%d" % number) for number in range(messages)]
        for number in range(messages):
            self.publish(number)
        for consumer in range(1, consumers + 1):
            self.subscribe(consumer)

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    def publish(self, number: int, at: int | None = None) -> None:
        self.checker.handle(Sent(self.tick(), PRODUCER, (self.messages[number],)))
        self.checker.handle(Acknowledged(self.tick(), PRODUCER, number, Position(1, number if at is None else at)))

    def subscribe(self, consumer: int) -> None:
        self.checker.handle(Connected(self.tick(), consumer))
        self.checker.handle(Subscribed(self.tick(), consumer, consumer, "s", self.kind, from_earliest=True))

    def deliver(self, consumer: int, *numbers: int) -> None:
        for number in numbers:
            self.checker.handle(Delivered(self.tick(), consumer, Position(1, number), (self.messages[number],)))

    def ack(self, consumer: int, *numbers: int, cumulative: bool = False) -> None:
        ids = tuple(MessageId(1, number, -1) for number in numbers)
        self.checker.handle(AckSent(self.tick(), consumer, ids, cumulative))

    def answer(self, consumer: int, *numbers: int) -> None:
        """The answer to the latest `ack` of these, as soon as the connection had one."""
        sent = self.now
        self.round_trip(consumer)
        ids = tuple(MessageId(1, number, -1) for number in numbers)
        self.checker.handle(AckAnswered(self.tick(), consumer, ids, cumulative=False, sent=sent))

    def nack(self, consumer: int, *numbers: int) -> None:
        self.checker.handle(Nacked(self.tick(), consumer, tuple(MessageId(1, number, -1) for number in numbers)))

    def round_trip(self, *consumers: int) -> None:
        for consumer in consumers:
            self.checker.handle(RoundTrip(self.tick(), consumer, self.now - 0.5))

    def end(self, consumer: int) -> None:
        self.checker.handle(SessionEnded(self.tick(), consumer))

    def stop(self, how: Stop, kept_until: float = 0.0) -> None:
        self.checker.handle(ServerStopped(self.tick(), how, kept_until))

    def seek(self, consumer: int, number: int) -> None:
        self.checker.handle(SeekAsked(self.tick(), consumer, Position(1, number)))
        self.end(consumer)
        self.checker.handle(SeekDone(self.tick(), consumer))

    def tell(self, consumer: int, mark_delete: int) -> None:
        self.checker.handle(LastMessageReported(self.tick(), consumer, Position(1, 4), Position(1, mark_delete)))

    def drain(self, consumer: int, *numbers: int) -> None:
        self.checker.handle(DrainStarted(self.tick(), "s"))
        self.subscribe(consumer)
        self.deliver(consumer, *numbers)
        self.checker.handle(DrainEnded(self.tick(), "s"))


EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED
