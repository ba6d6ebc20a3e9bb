"""A recoverer's steps in the modelled ledger: what `BookKeeper.open` and `RecoveryDriver` do around the real `Recovery`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bookkeeper.ledger_end import ledger_recovery
from bookkeeper.ledger_end.recovery import (
    Close,
    Effect,
    EntriesFound,
    EntryMissing,
    Event,
    Fence,
    Fenced,
    FenceFailed,
    GiveUp,
    LengthRead,
    Read,
    ReadFailed,
    ReadLength,
    Recovery,
    Rewrite,
    Rewritten,
    _Phase,
)
from bookkeeper.ledger_end.recovery_driver import RecoveredEnd
from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.write.quorum_tracker import QuorumTracker
from simulation.checks.history import Violation
from simulation.protocol.exhaustive import Frozen
from simulation.protocol.world import Bookie, Recoverer, Request, Stored, World, run_of
from wire.bookie.codes import BookieCode

OVER = Recoverer(is_over=True)
Step = tuple[str, Callable[[], World]]


def recoverer_steps(world: World) -> Iterator[Step]:
    for number, recoverer in enumerate(world.recoverers):
        if recoverer.is_over:
            continue
        if recoverer.known is None:
            if world.lacs:
                yield f"recoverer {number} starts", partial(_start, world, number)
            return  # the others that have not started are like it
        for request in sorted(recoverer.requests, key=repr):
            yield f"recoverer {number}: {request}", partial(_serve, world, number, request)


def _with(world: World, number: int, recoverer: Recoverer) -> World:
    return replace(world, recoverers=(*world.recoverers[:number], recoverer, *world.recoverers[number + 1 :]))


def _start(world: World, number: int) -> World:
    world, stored = world.updated(world.stored, ledger_recovery.in_recovery)
    if stored.metadata.state == LedgerState.CLOSED:
        return _with(world, number, OVER)
    machine = Recovery(world.bounds.quorum, stored.metadata.segments[-1].first_entry_id)
    return _perform(world, number, replace(world.recoverers[number], known=stored), machine, machine.start())


def _perform(world: World, number: int, recoverer: Recoverer, machine: Recovery, effects: Sequence[Effect]) -> World:
    """Performs the machine's effects until it has to wait."""
    requests: set[Request] = set(recoverer.requests)
    adds = None if recoverer.adds is None else recoverer.adds.thaw()
    todo = list(effects)
    while todo:
        match todo.pop(0):
            case Fence(bookie):
                requests.add(("fence", bookie))
            case Read(bookie, entry_id, fence_first):
                requests.add(("read", bookie, entry_id, fence_first))
            case ReadLength(entry_id):
                todo += machine.handle(LengthRead(entry_id + 1))
            case Rewrite() if "found-is-not-rewritten" in world.bounds.bugs:
                todo += machine.handle(Rewritten())
            case Rewrite(run):
                adds = adds or QuorumTracker(world.bounds.quorum, run.first_entry_id - 1)
                for send in adds.on_append(run.first_entry_id, run.count):
                    requests |= {("add", seat, send.piece, seat, send.first_entry_id, send.count) for seat in send.seats}
            case Close(last_entry_id, length_bytes):
                requests = {("close", last_entry_id, length_bytes)}
            case GiveUp():
                return _with(world, number, OVER)
    requests = {each for each in requests if _is_wanted(machine, each)}
    after = replace(
        recoverer, machine=Frozen(machine), requests=frozenset(requests), adds=None if adds is None else Frozen(adds)
    )
    return _with(world, number, after)


def _is_wanted(machine: Recovery, request: Request) -> bool:
    """An answer that comes too late is not listened to; and that the request fences takes away from what can go wrong."""
    match request[0]:
        case "fence":
            return machine._phase is _Phase.FENCING
        case "read":
            return machine._phase is _Phase.READING and request[2] == machine._last + 1
    return True


def _serve(world: World, number: int, request: Request) -> World:
    recoverer = world.recoverers[number]
    recoverer = replace(recoverer, requests=recoverer.requests - {request})
    kind, *details = request
    serve: Any = {"fence": _fence, "read": _read, "add": _add, "close": _close}[str(kind)]
    return serve(world, number, recoverer, *details)  # type: ignore[no-any-return]


def _handle(world: World, number: int, recoverer: Recoverer, events: Sequence[Event]) -> World:
    assert recoverer.machine is not None
    machine = recoverer.machine.thaw()
    effects = [effect for event in events for effect in machine.handle(event)]
    return _perform(world, number, recoverer, machine, effects)


def _name(recoverer: Recoverer, bookie: int) -> str:
    assert recoverer.known is not None
    return recoverer.known.metadata.segments[-1].bookies[bookie]


def _fenced(world: World, recoverer: Recoverer, bookie: int) -> tuple[World, Fenced | FenceFailed]:
    """The bookie is fenced in any case; what it has seen it can say when it can read its last entry."""
    name = _name(recoverer, bookie)
    entries = world.bookies[int(name)].entries
    world = world.with_bookie(name, Bookie(entries, is_fenced=True))
    if entries and world.bounds.damaged == int(name):
        if "damage-is-absence" in world.bounds.bugs:
            return world, Fenced(bookie, -1)
        return world, FenceFailed(bookie, BookieCode.EIO)
    return world, Fenced(bookie, world.lacs[max(entries)] if entries else -1)


def _fence(world: World, number: int, recoverer: Recoverer, bookie: int) -> World:
    world, event = _fenced(world, recoverer, bookie)
    return _handle(world, number, recoverer, [event])


def _read(world: World, number: int, recoverer: Recoverer, bookie: int, entry_id: int, fence_first: bool) -> World:
    if fence_first:
        world, event = _fenced(world, recoverer, bookie)
        if isinstance(event, FenceFailed):
            return _handle(world, number, recoverer, [ReadFailed(bookie, entry_id, event.code, "not fenced")])
        return _handle(world, number, recoverer, [event, _answer(world, recoverer, bookie, entry_id)])
    return _handle(world, number, recoverer, [_answer(world, recoverer, bookie, entry_id)])


def _answer(world: World, recoverer: Recoverer, bookie: int, entry_id: int) -> Event:
    at = int(_name(recoverer, bookie))
    entries = world.bookies[at].entries
    if entry_id not in entries:
        return EntryMissing(bookie, entry_id)
    if world.bounds.damaged == at:
        if "damage-is-absence" in world.bounds.bugs:
            return EntryMissing(bookie, entry_id)
        return ReadFailed(bookie, entry_id, BookieCode.EIO, "damaged")
    end = entry_id + 1
    while end in entries:
        end += 1
    return EntriesFound(bookie, run_of(entry_id, world.lacs[entry_id:end]))


def _add(world: World, number: int, recoverer: Recoverer, index: int, piece: int, seat: int, first: int, count: int) -> World:
    name = _name(recoverer, index)
    bookie = world.bookies[int(name)]
    assert bookie.refusal(recovery=True) is None, "a recovery's add is refused"
    assert recoverer.adds is not None
    world = world.with_bookie(name, Bookie(bookie.entries | set(range(first, first + count)), bookie.is_fenced))
    adds = recoverer.adds.thaw()
    moved = adds.on_stored(piece, seat) and not adds.pending_count
    return _handle(world, number, replace(recoverer, adds=Frozen(adds)), [Rewritten()] if moved else [])


def _close(world: World, number: int, recoverer: Recoverer, last_entry_id: int, length_bytes: int) -> World:
    assert recoverer.known is not None
    end = RecoveredEnd(last_entry_id, length_bytes, ())
    world, stored = world.updated(recoverer.known, lambda metadata: ledger_recovery.closed_at(metadata, end))
    _check_answer(world, stored)
    return _with(world, number, OVER)


def _check_answer(world: World, told: Stored) -> None:
    metadata, told_metadata = world.stored.metadata, told.metadata
    if metadata.state != LedgerState.CLOSED or metadata.last_entry_id != told_metadata.last_entry_id:
        raise Violation(f"a recoverer was told the end {told_metadata.last_entry_id}; the metadata: {metadata.last_entry_id}")
    if metadata.length_bytes != metadata.last_entry_id + 1:
        raise Violation(f"closed at {metadata.last_entry_id} with {metadata.length_bytes} bytes")
