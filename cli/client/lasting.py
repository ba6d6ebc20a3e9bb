"""A producer or consumer that outlives its connections: what ended is looked up and made again, with longer and longer pauses.

Owns which connection each has just now. `attend` waits for several of them at a time, in one thread. `cli.client.sender`
and `cli.client.subscription` say what is sent or asked for again on a new connection.
"""

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from cli.client.connection import PulsarConnection, is_readable
from cli.client.errors import ClientError, OwnerAway, RefusedByBroker, is_passing
from cli.client.topic import connection_of
from cli.client_configuration import ClientConfiguration

PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 10.0
START_SECONDS_MAX = 30.0
"""The time that a starting tool waits for a busy broker, or for topics to be taken over; Apache's operation timeout."""
REPEAT_SECONDS = 30.0
"""The time between two lines about a connection that is still not there."""
LOOK_SECONDS = 1.0


class Notices:
    """Lines for people about connections that are lost and made again."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.lost_count = 0

    def lost(self, topic: str, reason: str) -> None:
        self.lost_count += 1
        self._write(f"{topic}: {reason}; connecting again")

    def waits(self, topic: str, reason: str, seconds: float) -> None:
        self._write(f"{topic}: still not connected after {seconds:.0f} s: {reason}")

    def again(self, topic: str, seconds: float) -> None:
        self._write(f"{topic}: connected again after {seconds:.1f} s")


class Pauses:
    """The time to wait before each try: twice as long each time, up to a bound, a part of it by chance. Pure."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance, self._next = chance, PAUSE_SECONDS

    def next(self) -> float:
        pause, self._next = self._next, min(2 * self._next, PAUSE_SECONDS_MAX)
        return pause * (0.5 + 0.5 * self._chance())


class Lasting(ABC):
    """One producer or consumer of one topic. `open` once; then `attend` keeps it."""

    def __init__(self, topic: str, configuration: ClientConfiguration, notices: Notices) -> None:
        self.topic = topic
        self.connection: PulsarConnection | None = None
        self.reason = ""
        """Why there is no connection."""
        self._configuration, self._notices = configuration, notices
        self._pauses = Pauses(random.random)
        self._lost_at = self._try_at = self._told_at = 0.0

    @abstractmethod
    def introduce(self, connection: PulsarConnection, *, again: bool) -> None:
        """Makes the producer or consumer known on this connection. ClientError."""

    @property
    def was_there(self) -> bool:
        """Whether the tool was connected before: a broker may still hold the earlier producer or consumer."""
        return self._lost_at > 0.0

    def open(self) -> None:
        """Opens for the first time. A broker that is starting, or that takes over from one that died, is given some time.
        ClientError.
        """
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.connection = self._opened()
                return
            except ClientError as error:
                is_starting = isinstance(error, OwnerAway) or (isinstance(error, RefusedByBroker) and error.is_passing)
                pause = self._pauses.next()
                if not is_starting or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)

    def _opened(self) -> PulsarConnection:
        connection = connection_of(self.topic, self._configuration)
        try:
            self.introduce(connection, again=self.was_there)
        except BaseException:
            connection.close()
            raise
        return connection

    def lose(self, error: ClientError) -> None:
        """The connection is no good any more. An error that will not pass goes on its way."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
            self._lost_at = self._told_at = time.monotonic()
            self._pauses = Pauses(random.random)
            if is_passing(error, was_there=True):
                self._notices.lost(self.topic, str(error))
        if not is_passing(error, was_there=True):
            raise error
        self.reason = str(error)
        self._try_at = time.monotonic() + self._pauses.next()

    def tend(self) -> None:
        """Makes the connection again when it is time to try. ClientError that will not pass."""
        now = time.monotonic()
        if self.connection is not None or now < self._try_at:
            return
        try:
            self.connection = self._opened()
        except ClientError as error:
            self.lose(error)
            if now - self._told_at >= REPEAT_SECONDS:
                self._told_at = now
                self._notices.waits(self.topic, str(error), now - self._lost_at)
            return
        self._notices.again(self.topic, time.monotonic() - self._lost_at)

    def seconds_to_try(self) -> float:
        return max(0.0, self._try_at - time.monotonic())

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def attend(members: Sequence[Lasting], seconds: float) -> None:
    """Waits until something came for one of them, this time is over, or a lost connection was tried again.

    Afterwards each member's connection holds what came, if it has one. ClientError that will not pass.
    """
    for member in members:
        member.tend()
    there = [(member, member.connection) for member in members if member.connection is not None]
    if any(connection.has_more() for _, connection in there):
        return
    tries = [member.seconds_to_try() for member in members if member.connection is None]
    by_connection = {connection: member for member, connection in there}
    readable = is_readable(list(by_connection), min([seconds, LOOK_SECONDS, *tries]))
    for connection in readable:
        _guarded(by_connection[connection], connection.receive)
    for member, connection in there:
        if connection not in readable:
            _guarded(member, connection.keep_alive)


def _guarded(member: Lasting, act: Callable[[], None]) -> None:
    try:
        act()
    except ClientError as error:
        member.lose(error)
