"""A failure reaches each waiter as an exception of its own: one object in two futures would mix their tracebacks."""

import asyncio

from bookkeeper.write.parts import NOT_TAKEN, Part
from managed_ledger.append.answers import Append, answered_by, sent_again, tell_failure
from managed_ledger.errors import AppendRefused, ManagedLedgerFenced
from tests.simulation.worlds import World, run
from wire.run import EntryRun, batch_of


class Source:
    def __init__(self) -> None:
        self.failures: list[BaseException] = []

    def part_failed(self, part: Part, error: BaseException) -> None:
        self.failures.append(error)


def test_each_waiter_gets_an_exception_of_its_own_of_the_same_kind_and_text() -> None:
    async def scenario(world: World) -> None:
        failure, source = ManagedLedgerFenced("taken over"), Source()
        one, other = (world.loop.create_future() for _ in range(2))
        part = Part(batch_of([b"x"]), 0, 1, NOT_TAKEN, source, 0.0)
        for answer in (one, other, part):
            tell_failure(answer, failure)
        errors = [one.exception(), other.exception(), *source.failures]
        assert [(type(each), str(each)) for each in errors] == [(ManagedLedgerFenced, "taken over")] * 3
        assert len({id(each) for each in (failure, *errors)}) == 4

    run(scenario)


def test_a_waiter_that_gave_up_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        answer: asyncio.Future[EntryRun] = world.loop.create_future()
        answer.cancel()
        tell_failure(answer, AppendRefused("no room"))
        assert answer.cancelled()

    run(scenario)


def test_an_append_that_is_sent_again_keeps_its_waiter_and_its_time() -> None:
    async def scenario(world: World) -> None:
        answer: asyncio.Future[EntryRun] = world.loop.create_future()
        batch = batch_of([b"x"])
        append, part = Append(batch_of([b"x"]), answer, 5.0), Part(batch_of([b"x"]), 0, 1, NOT_TAKEN, None, 7.0)
        assert sent_again(batch, append) == Append(batch, answer, 5.0)
        assert sent_again(batch, part) == Append(batch, part, 7.0)
        assert answered_by(part) is part

    run(scenario)
