"""The writer's steps in the modelled ledger: what BookieLedgerWriter and ReplicatedAdds do around the real QuorumTracker."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment
from bookkeeper.ledgers import LedgerError
from bookkeeper.write.ensemble_change import WriterEnsembles
from bookkeeper.write.quorum_tracker import QuorumTracker, Send, Verdict
from bookkeeper.write.writer import BookieLedgerWriter
from simulation.protocol.exhaustive import Frozen
from simulation.protocol.world import LEDGER, Add, Bookie, World, Writer
from wire.bookie.codes import BookieCode

Step = tuple[str, Callable[[], World]]


def writer_steps(world: World) -> Iterator[Step]:
    writer, bounds = world.writer, world.bounds
    tracker = writer.tracker.peek()
    if writer.is_open and len(world.lacs) < bounds.entries:
        yield f"the writer appends {len(world.lacs)}", partial(_append, world)
    for at, queue in enumerate(writer.queues):
        if queue and world.bookies[at].refusal(recovery=False) is None:  # a refusal ends the writer: nothing more can go wrong
            yield f"{queue[0]} arrives at {at}", partial(_arrive, world, at)
        if writer.is_open and writer.given_up < bounds.given_up_max and any(add.is_awaited for add in queue):
            yield f"the writer gives up {at}", partial(_give_up, world, at)
    if writer.change is not None:
        yield f"the writer stores the ensemble {writer.change}", partial(_store, world)
    elif writer.is_open and not tracker.pending_count and not tracker.leaving and world.lacs:
        yield "the writer closes", partial(_close, world)


def _append(world: World) -> World:
    writer, entry_id = world.writer, len(world.lacs)
    tracker = writer.tracker.thaw()
    lacs = (*world.lacs, tracker.last_confirmed)
    queues = _sent(writer, writer.ensemble, tracker, tracker.on_append(entry_id, 1))
    return replace(world, lacs=lacs, writer=replace(writer, tracker=Frozen(tracker), queues=queues))


def _sent(
    writer: Writer, ensemble: Sequence[str], tracker: QuorumTracker, sends: Iterable[Send]
) -> tuple[tuple[Add, ...], ...]:
    queues = list(writer.queues)
    for send in sends:
        for seat in send.seats:
            index = tracker.index_of(seat)
            assert index is not None, "something is sent to a bookie that was replaced"
            queues[int(ensemble[index])] += (Add(send.piece, seat, send.first_entry_id),)
    return tuple(queues)


def _arrive(world: World, at: int) -> World:
    """The first add under way to a bookie; its answer too, if it is awaited."""
    writer, bookie = world.writer, world.bookies[at]
    add, *rest = writer.queues[at]
    queues = (*writer.queues[:at], tuple(rest), *writer.queues[at + 1 :])
    bookie = Bookie(bookie.entries | {add.entry_id}, bookie.is_fenced)
    world = replace(world.with_bookie(str(at), bookie), writer=replace(writer, queues=queues))
    if not (add.is_awaited and writer.is_open):
        return world
    tracker = writer.tracker.thaw()
    tracker.on_stored(add.piece, add.seat)
    return _settled(world, tracker)


def _give_up(world: World, at: int) -> World:
    """All adds under way there fail; they may arrive later."""
    writer = world.writer
    awaited = [add for add in writer.queues[at] if add.is_awaited]
    queue = tuple(replace(add, is_awaited=False) for add in writer.queues[at])
    queues = (*writer.queues[:at], queue, *writer.queues[at + 1 :])
    writer = replace(writer, queues=queues, given_up=writer.given_up + 1, failed=writer.failed | {str(at)})
    return _failed(replace(world, writer=writer), writer.tracker.thaw(), awaited)


def _failed(world: World, tracker: QuorumTracker, adds: Sequence[Add]) -> World:
    """`ReplicatedAdds._on_failed`, for each."""
    for add in adds:
        is_there = tracker.index_of(add.seat) is not None
        if is_there and tracker.on_failed(add.piece, add.seat, BookieCode.EIO) is Verdict.CHANGE:
            world = _replaced(world, tracker)
    return _settled(world, tracker)


def _replaced(world: World, tracker: QuorumTracker) -> World:
    """`ReplicatedAdds._replace`: a change begins, unless one is under way, no bookie leaves, or no spare one is there."""
    writer = world.writer
    leaving = tuple(tracker.leaving)
    if writer.change is not None or not leaving:
        return world
    ensemble = list(writer.ensemble)
    for seat in leaving:
        free = [
            name for name in map(str, range(world.bounds.bookies)) if name not in {*writer.ensemble, *ensemble, *writer.failed}
        ]
        index = tracker.index_of(seat)
        if free and index is not None:
            ensemble[index] = free[0]
    if tuple(ensemble) == writer.ensemble:
        tracker.on_kept(leaving)
        return world
    world = replace(world, writer=replace(writer, change=(tracker.last_confirmed + 1, tuple(ensemble), leaving)))
    if "ensemble-before-metadata" in world.bounds.bugs:
        return _applied(world, tracker)
    return world


def _store(world: World) -> World:
    writer, change = world.writer, world.writer.change
    assert change is not None
    segment, known = Segment(change[0], change[1]), writer.known.metadata.segments[-1]
    stub = cast(Any, SimpleNamespace(ledger=SimpleNamespace(ledger_id=LEDGER)))

    def changed(metadata: LedgerMetadata) -> LedgerMetadata | None:
        return WriterEnsembles._changed(stub, metadata, known, segment)

    try:
        world, stored = world.updated(writer.known, changed)
    except LedgerError:
        return _ended(world)
    world = replace(world, writer=replace(world.writer, known=stored))
    tracker = writer.tracker.thaw()
    if "ensemble-before-metadata" not in world.bounds.bugs:
        world = _applied(world, tracker)
    world = replace(world, writer=replace(world.writer, change=None))
    return _settled(_replaced(world, tracker), tracker)


def _applied(world: World, tracker: QuorumTracker) -> World:
    """`ReplicatedAdds._apply`."""
    writer, change = world.writer, world.writer.change
    assert change is not None
    _, ensemble, leaving = change
    replaced = [
        seat for seat in leaving if (index := tracker.index_of(seat)) is not None and ensemble[index] != writer.ensemble[index]
    ]
    changed = tracker.on_changed(replaced, [seat for seat in leaving if seat not in replaced])
    queues = _sent(writer, ensemble, tracker, changed.sends)
    return replace(world, writer=replace(writer, ensemble=ensemble, queues=queues))


def _settled(world: World, tracker: QuorumTracker) -> World:
    """The world after the tracker's decision: acknowledged, or failed."""
    world = replace(world, writer=replace(world.writer, tracker=Frozen(tracker)))
    if tracker.last_confirmed > world.acknowledged:
        world = replace(world, acknowledged=tracker.last_confirmed)
        world.check()
    return world if tracker.failure is None else _ended(world)


def _ended(world: World) -> World:
    """The world after the writer failed or closed; requests under way may arrive."""
    writer = world.writer
    queues = tuple(tuple(replace(add, is_awaited=False) for add in queue) for queue in writer.queues)
    return replace(world, writer=replace(writer, is_open=False, change=None, queues=queues))


def _close(world: World) -> World:
    writer = world.writer
    last = writer.tracker.peek().last_confirmed
    stub = cast(Any, SimpleNamespace(_adds=SimpleNamespace(last_confirmed=last), _length=len(world.lacs), ledger_id=LEDGER))
    with suppress(LedgerError):  # it is in recovery: somebody else closes it
        world, _ = world.updated(writer.known, lambda metadata: BookieLedgerWriter._closed_metadata(stub, metadata))
    return _ended(world)
