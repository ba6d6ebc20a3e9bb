"""The subscriptions of one topic: opening, creating and dropping them, one at a time.

Owns the map. Cursors are named by the subscription's URL-encoded name, as in Apache (Codec); cursors that are not subscriptions
(deduplication, replicators) are left alone.
"""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Protocol

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import EARLIEST, LATEST, ManagedCursor, ManagedLedger, ManagedLedgerError, New, run_of
from managed_ledger.cursor.properties import OWN_PREFIXES, internal
from metadata.paths import decode_name, encode_name
from ports.ends import ENDS
from ports.loop.side_by_side import side_by_side
from ports.loop.slices import SLICE, in_slices
from wire.kernels.delivery_rows import SubscriptionsRow
from wire.kernels.newest import hand_out
from wire.position import Position
from wire.run import EntryRun

from ...policies.in_force import PoliciesInForce
from ..contract import KeySharedMode, SubscribeRequest, SubscriptionType
from ..dispatch.deliveries import deliveries_of
from ..errors import broker_error, topic_unavailable
from ..limits.dispatch_throttle import DispatchLimit, SharedDispatchLimits
from ..publish.deduplication_driver import CURSOR as DEDUPLICATION_CURSOR
from ..statistics.rates import DeliveryCounters, PublishRates
from ..surroundings import TopicSurroundings
from .consumer import TopicConsumer
from .consumer_totals import ConsumerTotals
from .durable_cursors import DurableCursors
from .passes import ReadingOn, do_to_each
from .subscription import Subscription
from .subscription_host import SubscriptionHost

REPLICATOR_PREFIX = "pulsar.repl"
OF_COMPACTION = (
    f"The subscription {COMPACTION_CURSOR} is where the topic is compacted up to: compaction alone moves it, or messages would"
    " be in no compacted ledger. To compact: pulsar-admin topics compact; to give up what is compacted: delete the subscription"
)
TAKE_AT_ONCE = 5 * SLICE
"""Subscriptions that may take a new run without reading it; those after them read it from memory, in slices."""
RELEASED_AT_ONCE, _RELEASE_PAUSE_SECONDS = 250, 0.02
"""Subscriptions of an ended topic that are released between two pauses."""

_log = logging.getLogger(__name__)


class SubscriptionsHost(SubscriptionHost[Subscription], Protocol):
    """Part of a topic that its subscriptions need, besides what each of them needs."""

    @property
    def is_closed(self) -> bool: ...
    def run_task(self, work: Coroutine[Any, Any, None]) -> None: ...


class Subscriptions(SubscriptionsRow):
    """All subscriptions of a topic by name."""

    __slots__ = (
        "__weakref__", "_clock", "_deliveries", "_dispatch_limit", "_dispatcher_settings", "_host", "_limits", "_policies",
        "_published", "_reading_on", "_settings", "_shared", "_stop_hearing_of_cursors", "_subscription_class", "_turn",
        "_unloaded", "consumers", "durable", "gone",
    )  # fmt: skip

    _by_name: dict[str, Subscription]

    def __init__(
        self,
        host: SubscriptionsHost,
        policies: PoliciesInForce,
        published: PublishRates,
        around: TopicSurroundings,
        subscription_class: type[Subscription] = Subscription,
    ) -> None:
        self._host = host
        self._transactions = host.transactions
        self._deliveries = deliveries_of(asyncio.get_running_loop())
        self._subscription_class = subscription_class
        self._policies = policies
        self._limits = limits = around.limits
        self._published = published
        self._dispatch_limit = DispatchLimit()
        self._shared = SharedDispatchLimits(self._dispatch_limit, None, published, False, limits.unacked)
        self._settings = around.settings
        self._dispatcher_settings = around.dispatching
        self._clock = around.clock
        self._turn = asyncio.Lock()
        self.gone = DeliveryCounters()
        """Deliveries to consumers of subscriptions that are gone."""
        self.consumers = ConsumerTotals()
        self.durable = DurableCursors()
        self._by_name = {}
        self._reading_on = ReadingOn(self._by_name)
        self._stop_hearing_of_cursors = host.ledger.on_went_back(self._went_back)
        self.policies_changed()
        self._unloaded = iter(_compaction_first(host.ledger.cursors))
        self._load(islice(self._unloaded, SLICE))

    async def load(self) -> None:
        """Loads the stored subscriptions in slices, before a client sees the topic; the first slice is there already."""
        async for cursor_name in in_slices(self._unloaded):
            self._load((cursor_name,))

    def _load(self, cursor_names: Iterable[str]) -> None:
        for cursor_name in cursor_names:
            name, cursor = decode_name(cursor_name), self._host.ledger.cursors.get(cursor_name)
            if cursor is not None and not is_reserved(name):
                self._by_name[name] = self._subscription(name, cursor)

    @property
    def all(self) -> list[Subscription]:
        return list(self._by_name.values())

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def _went_back(self, cursor_name: str) -> None:
        self.durable.went_back(decode_name(cursor_name))

    def get(self, name: str) -> Subscription | None:
        return self._by_name.get(name)

    def take_newest(self, new: New, keep: Callable[[], None]) -> int:
        """A run was just confirmed; `keep` it, unless all consumers got it at once. Returns the number that got it."""
        taken = hand_out(self, new, self._clock.now_ms(), self._deliveries.by_link)
        if taken >= 0:
            self._deliveries.send_soon()
            return taken
        return self._take_run(run_of(new), keep)

    def _take_run(self, run: EntryRun, keep: Callable[[], None]) -> int:
        """Same as `take_newest`, for a run that is not plain for the kernel."""
        host, is_kept, taken, subscriptions = self._host, False, 0, self.all
        metadata = host.scanned.unremembered.metadata(run) if host.transactions.limit is None else None
        for subscription in subscriptions[:TAKE_AT_ONCE]:
            if metadata is not None and subscription.take_newest(run, metadata):
                taken += 1
                continue
            if not is_kept:
                is_kept = True
                keep()
            subscription.entries_available()
        if len(subscriptions) > TAKE_AT_ONCE:
            if not is_kept:
                keep()
            self._reading_on.tell(subscriptions[TAKE_AT_ONCE:])
        return taken

    def entries_available(self) -> None:
        """Tells all subscriptions to read on: the first at once, the rest in slices."""
        self._reading_on.tell(self.all)

    def entries_pass(self) -> None:
        """Tells all subscriptions at once: the entries are gone when this returns."""
        for subscription in self.all:
            subscription.entries_available()

    async def tell_end_of_topic(self) -> None:
        """Notifies consumers that have read all of a terminated topic, in slices. A consumer that comes or reads the last
        message meanwhile is notified then."""
        async for subscription in in_slices(self.all):
            subscription.tell_end_of_topic()

    def policies_changed(self) -> None:
        """Applies the policies on deliveries from now on."""
        published = self._published
        self._dispatch_limit.apply(self._policies.current.dispatch_rate, published, asyncio.get_running_loop().time())
        self._limits.refresh()
        limits, batches_as_one = self._limits, self._settings.dispatch_throttling_on_batch_message_enabled
        self._shared = SharedDispatchLimits(self._dispatch_limit, limits.dispatch, published, batches_as_one, limits.unacked)
        do_to_each(self._by_name, self.all, lambda subscription: subscription.policies_changed(self._shared))

    def publish_rates_sampled(self) -> None:
        """Dispatch rates may be relative to them. An idle topic's subscriptions are not touched if none is."""
        policies = self._policies.current
        rates = (policies.dispatch_rate, policies.subscription_dispatch_rate, *policies.subscription_rates.values())
        if not any(rate.is_relative_to_publish_rate for rate in rates):
            return
        self._dispatch_limit.sampled(self._published, asyncio.get_running_loop().time())
        do_to_each(self._by_name, self.all, lambda subscription: subscription.publish_rates_sampled(self._published))

    async def open_for(self, request: SubscribeRequest) -> Subscription:
        """The subscription that a consumer asks for, made when it is missing and may be made."""
        name = request.subscription
        if not name.strip():
            raise BrokerError(ServerError.PRODUCER_BUSY, "Empty subscription name")
        if is_reserved(name):
            raise BrokerError(ServerError.PRODUCER_BUSY, "Subscription with reserved subscription name attempted")
        if name == COMPACTION_CURSOR:
            raise BrokerError(ServerError.NOT_ALLOWED, OF_COMPACTION)
        await self._check_predecessors(request)
        async with self._turn:
            self._check_open()
            found = self._by_name.get(name)
            if found is not None:
                _check_same_durability(found, request.durable)
                return found
            self._check_room(name)
            if not request.durable:
                return self._open_non_durable(request)
            if not (request.auto_create_subscription and self._policies.current.auto_subscription_creation):
                raise BrokerError(ServerError.SUBSCRIPTION_NOT_FOUND, "Subscription does not exist")
            return await self._create(name, request.from_earliest, request.subscription_properties)

    async def _check_predecessors(self, request: SubscribeRequest) -> None:
        """Dead consumers in the way have left when this returns; a live one keeps the new consumer out."""
        found = self._by_name.get(request.subscription)
        others = [] if found is None else in_the_way(found.consumers, request)
        for other, is_alive in zip(others, await asyncio.gather(*(other.is_alive() for other in others)), strict=True):
            if not is_alive:
                _log.warning("%s: consumer %s was on a dead connection", self._host.name, other.name)

    async def create(self, name: str, *, from_earliest: bool, properties: Mapping[str, str] | None = None) -> Subscription:
        """A durable subscription without a consumer; the one there is, if there is one."""
        async with self._turn:
            self._check_open()
            found = self._by_name.get(name)
            if found is not None:
                return found
            self._check_room(name)
            return await self._create(name, from_earliest, properties)

    async def _create(self, name: str, from_earliest: bool, properties: Mapping[str, str] | None) -> Subscription:
        check_properties(properties or {})
        initial = EARLIEST if from_earliest else LATEST
        try:
            cursor = await self._host.ledger.open_cursor(encode_name(name), initial, properties)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        self._check_open()
        subscription = self._by_name[name] = self._subscription(name, cursor)
        subscription.transactions.is_new()
        _log.info("%s: created subscription %s", self._host.name, name)
        return subscription

    def _open_non_durable(self, request: SubscribeRequest) -> Subscription:
        ledger, name = self._host.ledger, request.subscription
        cursor_name = encode_name(name)
        while cursor_name in ledger.cursors:
            cursor_name += "'"  # the one before is still being closed; no encoded name has this in it
        try:
            cursor = ledger.open_non_durable_cursor(cursor_name, start_of_reader(ledger, request))
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        subscription = self._by_name[name] = self._subscription(name, cursor)
        return subscription

    def _subscription(self, name: str, cursor: ManagedCursor) -> Subscription:
        subscription = self._subscription_class(
            self._host, name, cursor, self._policies, self._settings, self._dispatcher_settings, self._clock
        )
        subscription.policies_changed(self._shared)
        if cursor.durable:
            self.durable.add(name, cursor)
        return subscription

    def _check_open(self) -> None:
        if self._host.is_closed:
            raise topic_unavailable()

    def _check_room(self, name: str) -> None:
        if name != COMPACTION_CURSOR and 0 < self._policies.current.max_subscriptions <= len(self._by_name):
            message = f"Exceed the maximum number of subscriptions of the topic: {self._host.name}"
            raise BrokerError(ServerError.NOT_ALLOWED, message)

    def check_consumer_limits(self, request: SubscribeRequest) -> None:
        settings = self._settings
        if 0 < self._policies.current.max_consumers <= self.consumers.count:
            raise BrokerError(ServerError.CONSUMER_BUSY, "Topic reached max consumers limit")
        if 0 < settings.max_same_address_consumers_per_topic <= self.consumers.count_from(request.address):
            raise BrokerError(ServerError.CONSUMER_BUSY, "Topic reached max same address consumers limit")

    async def drop(self, subscription: Subscription) -> None:
        """Delete its cursor and forget it."""
        async with self._turn:
            if self._by_name.get(subscription.name) is not subscription:
                return
            try:
                await subscription.transactions.delete()
                if subscription.cursor.durable:
                    await self._host.ledger.delete_cursor(encode_name(subscription.name))
                else:
                    await subscription.cursor.close()
            except ManagedLedgerError as error:
                raise broker_error(error) from error
            self._remove(subscription)
            _log.info("%s: deleted subscription %s", self._host.name, subscription.name)

    def abandon_if_useless(self, subscription: Subscription) -> None:
        """A non-durable subscription without consumers vanishes at once: its name can be used for another place."""
        if subscription.cursor.durable or subscription.consumer_count or subscription.is_fenced:
            return
        if self._by_name.get(subscription.name) is subscription:
            self._remove(subscription)
            subscription.end_consumers(None)
            self._host.run_task(subscription.cursor.close())

    def _remove(self, subscription: Subscription) -> None:
        del self._by_name[subscription.name]
        self.durable.remove(subscription.name)
        ENDS.ended(subscription)
        for counters in (subscription.gone, *(consumer.counters for consumer in subscription.consumers)):
            self.gone.include(counters)

    async def store_delays(self) -> None:
        """Stores delays before a polite end: the next load need not read delayed messages. Takes seconds at most."""
        for failure in await side_by_side(each.index.finish() for each in self.all if each.index is not None):
            if failure is not None:
                raise failure

    async def end_all(self, reason: str) -> None:
        """The topic closes: all consumers are closed. Returns when no cursor is being made or deleted any more."""
        everything = self.all
        for subscription in everything:
            subscription.is_fenced = True
        async for subscription in in_slices(everything):
            subscription.end_consumers(reason)
        async with self._turn:
            return

    async def let_go(self) -> None:
        """The topic has ended: they go in slices, not all at once with the topic, and no faster than their memory is given
        back: a request for the memory of thousands holds everybody up."""
        self._stop_hearing_of_cursors()
        async for number, name in in_slices(enumerate(list(self._by_name), 1)):
            if number % RELEASED_AT_ONCE == 0:
                await asyncio.sleep(_RELEASE_PAUSE_SECONDS)
            subscription = self._by_name.pop(name, None)
            self.durable.remove(name)
            if subscription is not None:
                ENDS.ended(subscription)


def start_of_reader(ledger: ManagedLedger, request: SubscribeRequest) -> Position:
    """The first position that a reader gets: the entry it names, in which it skips the messages that it has had. A place beyond
    the end, or none, means the initial position (NonDurableCursorImpl).
    """
    start = request.start
    if start is None or start > ledger.last_confirmed:
        return EARLIEST if request.from_earliest else LATEST
    return EARLIEST if start.ledger_id < 0 else start


def in_the_way(consumers: Sequence[TopicConsumer], request: SubscribeRequest) -> list[TopicConsumer]:
    """Consumers of other connections that make the subscription refuse this request, as in Apache: the exclusive consumer, and
    those whose own hash ranges overlap. Pure."""
    others = [other for other in consumers if other.type is request.type and other.request.address != request.address]
    match request.type:
        case SubscriptionType.EXCLUSIVE:
            return others
        case SubscriptionType.KEY_SHARED if request.key_shared.mode is KeySharedMode.STICKY:
            overlaps = _overlaps_with(request.key_shared.hash_ranges)
            return [other for other in others if any(map(overlaps, other.request.key_shared.hash_ranges))]
    return []


def _overlaps_with(ranges: Sequence[tuple[int, int]]) -> Callable[[tuple[int, int]], bool]:
    """Whether a range shares a slot with one of these, which may overlap each other: found by halving."""
    ordered = sorted(ranges)
    starts = [start for start, _ in ordered]
    ends = list(accumulate((end for _, end in ordered), max))

    def overlaps(asked: tuple[int, int]) -> bool:
        place = bisect_right(starts, asked[1])
        return place > 0 and ends[place - 1] >= asked[0]

    return overlaps


def is_reserved(name: str) -> bool:
    return name == DEDUPLICATION_CURSOR or name.startswith(REPLICATOR_PREFIX + ".")


def check_properties(properties: Mapping[str, str]) -> None:
    """BrokerError(NOT_ALLOWED) where a subscriber gives one of the broker's own: these name ledgers that it will delete."""
    for key in internal(properties):
        message = f"Subscription property {key}: names that begin with {' or '.join(OWN_PREFIXES)} are the broker's own"
        raise BrokerError(ServerError.NOT_ALLOWED, message)


def _check_same_durability(subscription: Subscription, durable: bool) -> None:
    if subscription.cursor.durable and not durable:
        raise BrokerError(ServerError.NOT_ALLOWED, "Durable subscription with the same name already exists.")
    if durable and not subscription.cursor.durable:
        raise BrokerError(ServerError.NOT_ALLOWED, "NonDurable subscription with the same name already exists.")


def _compaction_first(cursor_names: Iterable[str]) -> list[str]:
    """Cursor names with compaction's first: it is asked for before all are loaded. Otherwise in the order given."""
    return sorted(cursor_names, key=COMPACTION_CURSOR.__ne__)
