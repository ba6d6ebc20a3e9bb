"""BundleOwnership: performs the effects of the ownership machine, and finds the owners of other bundles. Owns the claims of
this broker's bundles. A lookup is answered with the owner's address, as by Apache; if the bundle has no owner, the broker that
it is placed on (`load.choosing`) is asked to take it. Bounds: ROUNDS_MAX, SETTLE_SECONDS_MAX, TAKE_OVER_SECONDS_MAX,
DRAINS_MAX.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from metadata.claim_driver import Claim, ClaimBusy
from metadata.store import MetadataError
from metadata.watches import until
from ports.logs import line
from ports.loop.side_by_side import side_by_side

from ...errors import BrokerError
from ..addresses import Advertised, Answer
from ..errors import BundleNotFound, BundleUnsettled, NoSuchBroker
from ..load.placement.choosing import Chooser
from ..load.placement.heirs import Heirs
from ..neighbours.members import MODULAR, Members, parse_broker_data
from ..topic_name import NamespaceName, TopicName
from .absent_owners import AbsentOwners, Refuses, nobody_refuses
from .bundles import Bundle, Bundles
from .foreign_owners import ForeignOwners
from .namespace_bundles import CutChanged, NamespaceBundles
from .own_nodes import OwnNodes
from .ownership_machine import (
    Adopted,
    CloseTopics,
    Effect,
    Event,
    Holding,
    Lost,
    OwnershipMachine,
    Refused,
    Release,
    Released,
    Replaced,
    Settle,
    Take,
    Taken,
    TopicsClosed,
    Unwanted,
    Wanted,
)

log = logging.getLogger(__name__)

ROUNDS_MAX = 5
"""Rounds of one lookup: each further one means that the bundle's owner changed while it was asked for."""
SETTLE_SECONDS_MAX = 20.0
"""Longest wait of a lookup for a bundle that is being taken or given up here."""
TAKE_OVER_SECONDS_MAX = 5.0
"""Longest wait of a client that was sent here with its topic, until the owner before has given the bundle up."""
MODULAR_REMEDY = f"loadManagerClassName={MODULAR} in their broker.conf, or stop them"
DRAINS_MAX = 16
"""Bundles that a broker that stops gives up at a time; the others are served until it is their turn."""


class BundleOwnership:
    """`Owners` in a cluster. `close_topics` closes the given topics, also those being loaded. `on_given_up` is notified of a
    bundle while its topics are closed; the next owner waits for it. Neither fails.
    """

    def __init__(
        self,
        nodes: OwnNodes,
        members: Members,
        bundles: NamespaceBundles,
        chooser: Chooser,
        close_topics: Callable[[Callable[[TopicName], bool]], Awaitable[None]],
        on_given_up: Callable[[Bundle], Awaitable[None]],
        refuses: Refuses = nobody_refuses,
    ) -> None:
        self._nodes, self._members, self._bundles, self._chooser = nodes, members, bundles, chooser
        self._close_topics, self._on_given_up = close_topics, on_given_up
        self._absent = AbsentOwners(nodes.store, refuses)
        self._foreign = ForeignOwners(nodes.store, members, self._on_members)
        self._heirs = Heirs(members, self._chooser)
        self._split_now: dict[Bundle, asyncio.Event] = {}
        """Set when the split has ended, well or not."""
        bundles.listen(self._on_cut)
        self._machine = OwnershipMachine()
        self._claims: dict[Bundle, Claim] = {}
        self._waiting: dict[Bundle, asyncio.Future[None]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_closing = self._is_yielding = False

    def serves(self, topic: TopicName) -> bool:
        known = self._bundles.known(topic.namespace)
        return known is not None and self._machine.holding(known.of(topic)) is Holding.OWNED

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer | None:
        for _ in range(ROUNDS_MAX):
            cut = await self._bundles.of(topic.namespace)
            bundle = cut.of(topic)
            holding = self._machine.holding(bundle)
            if holding is Holding.OWNED:
                return None
            if holding is Holding.FREE:
                answer = await self._elsewhere(cut, bundle, listener, authoritative)
                if answer is not None:
                    return answer
                self._handle(Wanted(bundle))
            await self._settled(bundle)
        raise BundleUnsettled(f"The owner of {bundle} changes all the time")

    async def owner(self, topic: TopicName) -> Answer | None:
        bundle = (await self._bundles.of(topic.namespace)).of(topic)
        return None if self._machine.holding(bundle) is not Holding.FREE else await self._owner(bundle, "")

    async def cut(self, namespace: NamespaceName) -> Bundles | None:
        return await self._bundles.of(namespace)

    async def unload(self, namespace: NamespaceName, bundle_range: str, destination: str = "") -> Answer | None:
        bundle = await self._named(namespace, bundle_range)
        if destination:
            await self.wish(namespace, bundle_range, destination)
        if self._machine.holding(bundle) is Holding.FREE:
            return await self._owner(bundle, "")
        await self._heirs.as_wished(bundle)
        self._handle(Unwanted(bundle))
        await self._settled(bundle)
        return None

    async def take_over(self, topic: TopicName) -> None:
        bundle = (await self._bundles.of(topic.namespace)).of(topic)
        if self._machine.holding(bundle) is Holding.FREE:
            if self._is_closing or not await self._heirs.wish_for_own(bundle) or not await self._until_given_up(bundle):
                return
            self._handle(Wanted(bundle))
        await self._settled(bundle)

    def heir(self, topic: TopicName) -> Advertised | None:
        known = self._bundles.known(topic.namespace)
        return None if known is None else self._heirs.of(known.of(topic))

    async def wish(self, namespace: NamespaceName, bundle_range: str, destination: str) -> None:
        bundle = await self._named(namespace, bundle_range)
        if destination not in await self._members.ids():
            raise NoSuchBroker(destination)
        await self._chooser.wish(bundle, destination)

    async def _named(self, namespace: NamespaceName, bundle_range: str) -> Bundle:
        bundle = (await self._bundles.of(namespace)).named(bundle_range)
        if bundle is None:
            raise BundleNotFound(str(namespace), bundle_range)
        return bundle

    async def split(
        self, namespace: NamespaceName, bundle_range: str, cuts: Callable[[Bundles, Bundle], Sequence[int]], *, unload: bool
    ) -> Answer | None:
        """The children's nodes are ours before the cut says that there are children, and the parent's goes last: at no
        moment may another broker serve its topics, which stay open. `cuts` are new boundaries of the namespace; its errors
        are raised.
        """
        bundle = await self._named(namespace, bundle_range)
        while (under_way := self._split_now.get(bundle)) is not None:
            await under_way.wait()
            bundle = await self._named(namespace, bundle_range)
        if self._machine.holding(bundle) is Holding.FREE:
            elsewhere = await self._owner(bundle, "")
            if elsewhere is not None:
                return elsewhere
            self._handle(Wanted(bundle))
        await self._settled(bundle)
        if bundle in self._split_now:  # by another caller meanwhile: two would release each other's parts
            raise CutChanged(namespace)
        done = self._split_now[bundle] = asyncio.Event()
        try:
            children = await self._split(bundle, cuts)
        finally:
            del self._split_now[bundle]
            done.set()
        if unload:
            for child in children:
                self._handle(Unwanted(child))
            for child in children:
                await self._settled(child)
        return None

    async def _split(self, bundle: Bundle, cuts: Callable[[Bundles, Bundle], Sequence[int]]) -> list[Bundle]:
        cut = await self._bundles.of(bundle.namespace)
        new = Bundles(bundle.namespace, tuple(cuts(cut, bundle)))
        children = [each for each in new.all() if bundle.low <= each.low < bundle.high]
        try:
            for child in children:
                await self._adopt(child)
            if self._machine.holding(bundle) is not Holding.OWNED or self._is_closing:
                raise BundleUnsettled(f"{bundle} was given up while it was split")
            await self._bundles.replace(cut, new.boundaries)
        except (BrokerError, MetadataError):
            for child in children:
                self._handle(Replaced(child))
            raise
        log.info(line("bundle is split", bundle=bundle, into=" ".join(child.range for child in children)))
        self._handle(Replaced(bundle))
        await self._settled(bundle)
        return children

    async def _adopt(self, child: Bundle) -> None:
        self._claims[child] = await self._nodes.claim(child, lambda: self._handle(Lost(child)))
        self._handle(Adopted(child))

    def _on_cut(self, cut: Bundles) -> None:
        """Gives up bundles of an older cut: no client is sent here for them any more."""
        current = dict.fromkeys(cut.all())
        for bundle in self._machine.held():
            if bundle.namespace == cut.namespace and bundle not in current and bundle not in self._split_now:
                self._handle(Unwanted(bundle))

    async def close(self) -> None:
        """Bundle by bundle, DRAINS_MAX at a time, each for an heir."""
        self._is_closing = True
        held = list(self._machine.held())
        for failure in await side_by_side(map(self._drain, held), DRAINS_MAX):
            if failure is not None:
                raise failure
        self._foreign.close()
        while self._tasks:
            await asyncio.wait(list(self._tasks))
        self._bundles.close()

    async def _drain(self, bundle: Bundle) -> None:
        cut = self._bundles.known(bundle.namespace)
        if cut is not None and bundle in cut.all():
            await self._heirs.as_chosen(cut, bundle)
        self._handle(Unwanted(bundle))
        try:
            await self._settled(bundle)
        except BundleUnsettled as error:
            log.warning(line("releasing a bundle takes long", reason=error))

    # ---- Who else

    async def _elsewhere(self, cut: Bundles, bundle: Bundle, listener: str, authoritative: bool) -> Answer | None:
        """None when this broker is to take it."""
        owner = await self._owner(bundle, listener)
        if owner is not None and (owner.is_redirect or not await self._absent.is_outlived(bundle.path, owner.address)):
            return owner
        own, registered = self._members.own_id, await self._members.ids()
        if authoritative and not self._is_closing:
            return None
        candidates = set(registered) - {own} if self._is_closing else {own, *registered}
        chosen = await self._chooser.choose(cut, bundle, candidates)
        if chosen is None:
            raise BundleUnsettled(f"No broker is there to serve {bundle}")
        value = None if chosen == own else await self._members.data(chosen)
        if value is not None:
            return _answer(value, listener, is_redirect=True)
        if self._is_closing:
            raise BundleUnsettled("The broker is stopping")
        return None

    async def _owner(self, bundle: Bundle, listener: str) -> Answer | None:
        """Returns the owner in the node; None for a node that an earlier session of ours left. One of the brokers that own
        bundles without nodes, where there are such: it knows the owner.
        """
        foreign = await self._foreign.one()
        if foreign is not None:
            return _answer(foreign, listener, is_redirect=True)
        value = await self._nodes.of_another(bundle)
        return None if value is None else _answer(value, listener, is_redirect=False)

    def _on_members(self) -> None:
        if not self._is_closing:
            self._start(self._yield_to_foreign())

    async def _yield_to_foreign(self) -> None:
        """Gives up all bundles to brokers that own bundles without nodes: they take ours too, and clients here would not
        notice."""
        try:
            if await self._foreign.one() is None:
                self._is_yielding = False
                return
        except MetadataError as error:
            log.warning(line("load managers of other brokers cannot be read", reason=error))
            return
        if not self._is_yielding:
            self._is_yielding = True
            log.warning(line("serves nothing beside brokers with ExtensibleLoadManagerImpl", remedy=MODULAR_REMEDY))
        for bundle in self._machine.held():
            self._handle(Unwanted(bundle))

    async def _until_given_up(self, bundle: Bundle) -> bool:
        """False when that takes too long."""

        async def is_given_up() -> bool:
            return await self._owner(bundle, "") is None

        return await until(self._nodes.store, bundle.path, is_given_up, TAKE_OVER_SECONDS_MAX)

    # ---- Doing

    def _handle(self, event: Event) -> None:
        for effect in self._machine.handle(event):
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Take():
                self._start(self._take(effect.bundle))
            case CloseTopics():
                log.info(line("bundle released", bundle=effect.bundle))
                self._start(self._close_bundle(effect.bundle))
            case Release():
                self._start(self._release(effect.bundle))
            case Settle():
                waiting = self._waiting.pop(effect.bundle, None)
                if waiting is not None:
                    waiting.set_result(None)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="bundle ownership")
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _settled(self, bundle: Bundle) -> None:
        """Waits until the bundle is served here or not ours; BundleUnsettled when that takes too long."""
        if self._machine.holding(bundle) in (Holding.OWNED, Holding.FREE):
            return
        waiting = self._waiting.setdefault(bundle, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await asyncio.shield(waiting)
        except TimeoutError:
            raise BundleUnsettled(f"{bundle} is being unloaded, or taken") from None

    async def _take(self, bundle: Bundle) -> None:
        def lost() -> None:
            self._handle(Lost(bundle))

        try:
            self._claims[bundle] = await self._nodes.claim(bundle, lost)
        except ClaimBusy:
            self._handle(Refused(bundle))
        except MetadataError as error:
            log.warning(line("bundle not taken", bundle=bundle, reason=error))
            self._handle(Refused(bundle))
        else:
            log.info(line("bundle taken", bundle=bundle))
            self._handle(Taken(bundle))

    async def _close_bundle(self, bundle: Bundle) -> None:
        await asyncio.gather(self._close_topics(bundle.covers), self._on_given_up(bundle))
        self._handle(TopicsClosed(bundle))

    async def _release(self, bundle: Bundle) -> None:
        claim = self._claims.pop(bundle, None)
        if claim is not None:
            await claim.close()
        self._heirs.forget(bundle)
        self._handle(Released(bundle))


def _answer(value: bytes, listener: str, *, is_redirect: bool) -> Answer:
    return Answer(parse_broker_data(value, listener), is_redirect)
