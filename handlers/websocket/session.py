"""Session: the driver of one session's machine: links to brokers, lookups, producers and consumers that are made again, timers.

Owns the links. The machine decides the meaning of frames and texts, the WebSocket connection owns the client's socket.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ports.clock import Clock
from ports.logs import line
from ports.rng import Rng
from wire.client_end import Received
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandLookupTopicResponse

from .broker_link import BrokerLink
from .client import Client
from .dead_letters import DeadLetters
from .errors import PASSING, BrokerRefused, CloseCode, LinkLost, Refused, status_of
from .machines.consuming import ConsumerSession
from .machines.effects import Bury, Effect, End, Machine, Now, Reattach, Send, Tell, Unsubscribe
from .machines.options import consumer_options, producer_options, reader_options
from .machines.producing import ProducerSession
from .machines.reading import ReaderSession
from .requests import Asked, Kind, Proof
from .ways import HOME, Peer, Way

log = logging.getLogger(__name__)

REDIRECTS_MAX = 20
PARTITIONS_MAX = 1000
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.1, 10.0


class Session:
    """`open` once, `close` last. `closed` twice is fine."""

    def __init__(self, asked: Asked, proof: Proof, peer: Peer, way: Way, clock: Clock, rng: Rng, client: Client) -> None:
        self.asked = asked
        self._proof, self._peer, self._way, self._clock, self._rng, self._client = proof, peer, way, clock, rng, client
        self._loop = asyncio.get_running_loop()
        self._links: dict[str, asyncio.Task[BrokerLink]] = {}
        self._at: dict[int, BrokerLink] = {}
        """Link of each place that is attached, or is being attached."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._machine: Machine
        self._is_open, self._is_blocked = True, False
        self._dead_letters: DeadLetters | None = None

    # ---- Beginning and end

    async def open(self) -> None:
        """Attaches all producers or consumers. Refused."""
        options = self._options()
        try:
            topics = await self._partitions()
            self._machine = self._made(options, topics)
            for place in range(len(topics)):
                await self._attach(place)
        except BrokerRefused as refused:
            raise Refused(status_of(refused.code), f"Failed to create producer/consumer: {refused}") from None
        except LinkLost as lost:
            raise Refused(503, f"Failed to create producer/consumer: {lost}") from None

    def _options(self) -> Any:
        """Refused(400)."""
        asked = self.asked
        match asked.kind:
            case Kind.PRODUCER:
                return producer_options(asked.query)
            case Kind.CONSUMER:
                return consumer_options(asked.query, asked.topic, asked.subscription)
            case Kind.READER:
                return reader_options(asked.query)

    def _made(self, options: Any, topics: list[str]) -> Machine:
        chance = self._rng.getrandbits(40)
        match self.asked.kind:
            case Kind.PRODUCER:
                return ProducerSession(options, topics, chance)
            case Kind.CONSUMER:
                return ConsumerSession(options, topics, self.asked.subscription, f"{chance & 0xFFFFF:05x}")
            case Kind.READER:
                return ReaderSession(options, topics, f"reader-{chance:010x}")

    async def _partitions(self) -> list[str]:
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
        command.partition_metadata.topic = self.asked.topic
        answer = (await (await self._link(HOME)).ask(command)).partition_metadata_response
        if answer.HasField("error"):
            raise BrokerRefused(answer.error, answer.message)
        if answer.partitions > PARTITIONS_MAX:
            raise Refused(400, f"a topic of {answer.partitions} partitions, more than the {PARTITIONS_MAX} of a session")
        topic = self.asked.topic
        return [f"{topic}-partition-{number}" for number in range(answer.partitions)] or [topic]

    def close(self) -> None:
        """Closes the links, and the producers and consumers with them. Closing twice is fine."""
        self._is_open = False
        if self._dead_letters is not None:
            self._dead_letters.close()
        if self._timer is not None:
            self._timer.cancel()
        for task in (*self._tasks, *self._links.values()):
            if task.done() and not task.cancelled() and task.exception() is None:
                link = task.result()
                if isinstance(link, BrokerLink):
                    link.close()
            task.cancel()

    # ---- Links

    async def _link(self, address: str) -> BrokerLink:
        """BrokerRefused, LinkLost."""
        task = self._links.get(address)
        if task is None or (task.done() and (task.cancelled() or task.exception() or task.result().has_ended)):
            task = self._links[address] = self._loop.create_task(self._connected(address), name="WebSocket link")
        return await asyncio.shield(task)

    async def _connected(self, address: str) -> BrokerLink:
        link = BrokerLink(self._way.hello(address, self._proof, self._peer), self)
        await self._way.connect(address, lambda: link, self._peer)
        try:
            await link.greeted()
        except BaseException:
            link.close()
            raise
        return link

    async def _owner(self, topic: str) -> str:
        """Address of the broker that serves the topic. BrokerRefused, LinkLost."""
        address, is_authoritative = HOME, False
        for _ in range(REDIRECTS_MAX):
            command = BaseCommand(type=BaseCommand.LOOKUP)
            command.lookup_topic.topic, command.lookup_topic.authoritative = topic, is_authoritative
            answer = (await (await self._link(address)).ask(command)).lookup_topic_response
            if answer.response == CommandLookupTopicResponse.Failed:
                raise BrokerRefused(answer.error, answer.message)
            if answer.proxy_through_service_url:
                return HOME
            address = self._way.chosen(answer.broker_service_url, answer.broker_service_url_tls)
            if answer.response == CommandLookupTopicResponse.Connect:
                return address
            is_authoritative = answer.authoritative
        raise LinkLost(f"{topic}: redirected more than {REDIRECTS_MAX} times")

    async def _attach(self, place: int) -> None:
        """BrokerRefused, LinkLost."""
        link = await self._link(await self._owner(self._machine.topics[place]))
        self._at[place] = link
        answer = await link.ask(self._machine.introduction(place))
        if isinstance(self._machine, ProducerSession):
            self._machine.message_bytes_max = link.message_bytes_max
        self._perform(self._machine.on_attached(place, answer, self._now()))

    async def _reattach(self, place: int) -> None:
        pause, reason = PAUSE_SECONDS, ""
        while self._is_open:
            await asyncio.sleep(pause * (0.5 + 0.5 * self._rng.random()))
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
            try:
                await self._attach(place)
            except LinkLost as lost:
                reason = str(lost)
            except BrokerRefused as refused:
                if refused.code not in PASSING:
                    self._refused(refused)
                    return
                reason = str(refused)
            else:
                return
            log.info(line("session not attached", topic=self._machine.topics[place], reason=reason[:300]))

    def _refused(self, refused: BrokerRefused) -> None:
        match refused.code:
            case api.ServerError.AuthenticationError:
                self._client.end(CloseCode.POLICY_VIOLATION, f"5: Failed to authenticate client: {refused}")
            case api.ServerError.AuthorizationError:
                self._client.end(CloseCode.POLICY_VIOLATION, f"6: Client is not authorized: {refused}")
            case _:
                self._client.end(CloseCode.INTERNAL_ERROR, f"8: {refused}")

    def _lost(self, place: int) -> None:
        if self._is_open and self._at.pop(place, None) is not None:
            self._machine.on_lost(place)
            self._begin(self._reattach(place))

    # ---- LinkOwner

    def on_frame(self, link: BrokerLink, place: int, received: Received) -> None:
        if self._is_open and self._at.get(place) is link:
            self._perform(self._machine.on_received(place, received, self._now()))

    def on_link_end(self, link: BrokerLink) -> None:
        for place in [place for place, at in self._at.items() if at is link]:
            self._lost(place)

    def on_blocked(self) -> None:
        self._client.reading_changed()

    # ---- The client

    @property
    def takes_more(self) -> bool:
        """Whether the client may send more just now."""
        return not self._machine.is_full and not any(link.is_blocked for link in self._at.values())

    def on_text(self, text: bytes) -> None:
        if self._is_open:
            self._perform(self._machine.on_text(text, self._now()))

    def client_blocked(self, *, is_blocked: bool) -> None:
        """The client does not read its messages, or reads again: its brokers wait meanwhile, and so do messages that came."""
        self._is_blocked = is_blocked
        self._arm()
        for link in dict.fromkeys(self._at.values()):
            if is_blocked:
                link.pause()
            else:
                link.resume()

    # ---- Effects

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Tell(text):
                    self._client.tell(text)
                case Send(place, frame):
                    if place in self._at:
                        self._at[place].send(frame)
                case Reattach(place, is_closed):
                    self._give_up(place, is_closed=is_closed)
                case Unsubscribe(place):
                    self._begin(self._unsubscribe(place))
                case End(code, reason):
                    self._client.end(code, reason)
                case Bury(text):
                    self._bury(text)
        self._arm()
        self._client.reading_changed()

    def _give_up(self, place: int, *, is_closed: bool) -> None:
        link = self._at.get(place)
        if link is None:
            return
        if is_closed:
            self._lost(place)
        else:
            link.close()
            self.on_link_end(link)

    async def _unsubscribe(self, place: int) -> None:
        command = BaseCommand(type=BaseCommand.UNSUBSCRIBE)
        command.unsubscribe.consumer_id = place
        try:
            if place in self._at:
                await self._at[place].ask(command)
        except (BrokerRefused, LinkLost) as error:
            self._client.end(CloseCode.INTERNAL_ERROR, f"8: cannot unsubscribe: {error}")

    def _bury(self, text: str) -> None:
        assert isinstance(self._machine, ConsumerSession), "others bury nothing"
        if self._dead_letters is None:
            self._dead_letters = DeadLetters(self._of_dead_letters, self._on_buried)
        self._dead_letters.publish(text)

    def _on_buried(self, context: str, *, is_stored: bool) -> None:
        if self._is_open and isinstance(self._machine, ConsumerSession):
            self._perform(self._machine.on_buried(context, self._now(), is_stored=is_stored))

    def _of_dead_letters(self, client: Client) -> "Session":
        """Session of a producer of the dead letter topic, with the same credentials."""
        assert isinstance(self._machine, ConsumerSession)
        query = {"maxPendingMessages": "10000"}
        asked = Asked(Kind.PRODUCER, self._machine.dead_letter_topic, "", query)
        return Session(asked, self._proof, self._peer, self._way, self._clock, self._rng, client)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    # ---- Time

    def _now(self) -> Now:
        return Now(self._loop.time(), self._clock.now_ms())

    def _arm(self) -> None:
        due = self._machine.due() if self._is_open and not self._is_blocked else None
        if self._timer is not None:
            if due is not None and self._timer.when() <= due and not self._timer.cancelled():
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._perform(self._machine.on_timer(self._now()))
