"""Together: the parts of many ledgers that one turn of the loop brought go to their bookies at once, and come back at once.

One kernel seals them all, each bookie gets one mix of its parts and answers once, and the answer is one pass over them in the
order in which they were given. Parts that cannot go in a mix are added one by one: those of a ledger that is new to the bookie,
those that need an answer each, and a part that is alone.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from bookkeeper.ports import MixTaker
from bookkeeper.write.parts import Part, Route
from ports.loop.promise import listen
from ports.loop.turn import turn_of
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.kernels.mixes import mix_of, seal_parts
from wire.kernels.turns import store_parts
from wire.run import EntryMix


class Due(Protocol):
    """A receiver of stored parts, called at the end of the turn."""

    def end_turn(self) -> None:
        """End the turn."""


class Share(NamedTuple):
    """Parts that a bookie gets, and in which seat it is in the ensembles of their ledgers."""

    seat: int
    parts: list[Part]


class Load(NamedTuple):
    """All that one bookie gets."""

    taker: MixTaker
    master_key: bytes
    shares: list[Share]


def send(parts: Sequence[Part]) -> None:
    """Parts that have their ids from `LedgerWriter.take_part`. Their owners learn the end later, never in this call."""
    if not parts:
        return
    whole = seal_parts(parts)
    if len(parts) == 1:
        _send_alone(parts[0])
        return
    for load in _loads(parts):
        _hand_over(load, whole, len(parts))


def _send_alone(part: Part) -> None:
    route = part.adds.route
    assert route is not None, "else it had not been taken"
    run, key = part.run(), route.master_key
    for seat, taker in zip(route.seats, route.takers, strict=True):
        listen(taker.add(run, key), partial(_alone_answered, part, seat))


def _loads(parts: Sequence[Part]) -> Iterable[Load]:
    loads: dict[tuple[MixTaker, bytes], Load] = {}
    for route, theirs in _by_route(parts).items():
        for seat, taker in zip(route.seats, route.takers, strict=True):
            load = loads.get((taker, route.master_key))
            if load is None:
                load = loads[taker, route.master_key] = Load(taker, route.master_key, [])
            load.shares.append(Share(seat, theirs))
    return loads.values()


def _by_route(parts: Sequence[Part]) -> dict[Route, list[Part]]:
    """The parts of ledgers with the same route, in their order."""
    routes: dict[Route, list[Part]] = {}
    last: Route | None = None
    theirs: list[Part] = []
    for part in parts:
        route = part.adds.route
        assert route is not None, "else it had not been taken"
        if route != last:
            theirs, last = routes.setdefault(route, []), route
        theirs.append(part)
    return routes


def _hand_over(load: Load, whole: EntryMix, total: int) -> None:
    writable = load.taker.writable_ledgers
    if writable is not None:
        load = load._replace(shares=[_mixable(load, share, writable) for share in load.shares])
    count = sum([len(share.parts) for share in load.shares])
    if count == 1:
        _add_each(load)
    elif count:
        mix = whole if count == total else mix_of([part for share in load.shares for part in share.parts])
        listen(load.taker.add_mix(mix, load.master_key), partial(_answered, load))


def _mixable(load: Load, share: Share, writable: Mapping[int, bytes]) -> Share:
    """The share without unmixable parts, which are added now, each by itself. No part of a ledger overtakes another."""
    key, find = load.master_key, writable.get
    new = {part.ledger_id for part in share.parts if find(part.ledger_id) != key}
    if not new:
        return share
    _add_each(load._replace(shares=[Share(share.seat, [part for part in share.parts if part.ledger_id in new])]))
    return Share(share.seat, [part for part in share.parts if part.ledger_id not in new])


def _add_each(load: Load) -> None:
    for seat, parts in load.shares:
        for part in parts:
            listen(load.taker.add(part.run(), load.master_key), partial(_alone_answered, part, seat))


def _alone_answered(part: Part, seat: int, answer: "asyncio.Future[None]") -> None:
    error = answer.exception() if not answer.cancelled() else BookieError(BookieCode.EIO, part.ledger_id, "cancelled")
    if error is None:
        _all_stored([part], seat, answer.get_loop())
    else:
        part.adds.part_failed(part, seat, error)


def _answered(load: Load, answer: "asyncio.Future[None]") -> None:
    error = answer.exception() if not answer.cancelled() else BookieError(BookieCode.EIO, -1, "cancelled")
    if isinstance(error, NotAsOne):
        _add_each(
            load._replace(
                shares=[Share(seat, [part for part in parts if part.adds.is_in(seat)]) for seat, parts in load.shares]
            )
        )
        return
    loop = answer.get_loop()
    for seat, parts in load.shares:
        if error is None:
            _all_stored(parts, seat, loop)
        else:
            for part in parts:
                _take(partial(part.adds.part_failed, part, seat, _for(part, error)), part, loop)


def _all_stored(parts: list[Part], seat: int, loop: asyncio.AbstractEventLoop) -> None:
    """A kernel takes plain parts; the others get their answers one by one."""
    due: list[Due] = []
    place, total, now = 0, len(parts), loop.time()
    while place < total:
        place = store_parts(parts, place, seat, now, due)
        if place < total:
            part = parts[place]
            _take(partial(part.adds.part_stored, part, seat), part, loop)
            place += 1
    turn = turn_of(loop)
    for each in due:
        turn.at_end(each.end_turn)


def _take(answer: Callable[[], None], part: Part, loop: asyncio.AbstractEventLoop) -> None:
    try:
        answer()
    except Exception as raised:  # noqa: BLE001  # as the loop does it for callbacks: the other parts are answered too
        context = {"message": f"the answer to a part of ledger {part.ledger_id} was not taken", "exception": raised}
        loop.call_exception_handler(context)


def _for(part: Part, error: BaseException) -> BaseException:
    """The error of a mix, as one of a part alone."""
    return BookieError(error.code, part.ledger_id, error.detail) if isinstance(error, BookieError) else error
