"""One ledger is repaired: with every digest, striped or not, open or closed, cut off anywhere, refused by some bookies."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.repair.ledger.ledger_repair import State
from bookkeeper.repair.recover import recover
from bookkeeper.repair.settings import RepairSettings
from tests.bookkeeper.repair.repair_world import RepairWorld
from tests.simulation.worlds import World, run
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

Scenario = Callable[[World], Coroutine[Any, Any, None]]


def in_virtual_time(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded(_: World) -> None:
        async with asyncio.timeout(100_000):
            await scenario()

    run(bounded)


@pytest.mark.parametrize("digest", ["CRC32", "MAC", "CRC32C", "DUMMY"])
@pytest.mark.parametrize("quorum", [(2, 2, 2), (3, 3, 2), (4, 2, 2), (5, 3, 2)])
def test_entries_of_lost_bookies_are_copied_and_the_bookies_named_no_more(digest: str, quorum: tuple[int, int, int]) -> None:
    async def scenario() -> None:
        world = RepairWorld(8, RepairSettings(rereplication_entry_batch_size=4))
        await world.up()
        ledger_id = await world.closed_ledger(quorum, 37, digest, "secret")
        lost = world.metadata(ledger_id).segments[0].bookies[: max(1, quorum[1] - 1)]
        await world.down(*lost)
        assert world.lacks(ledger_id)
        outcome = await (await world.repairer()).repair(ledger_id)
        assert outcome.state is State.WHOLE, outcome
        assert outcome.is_changed
        assert world.lacks(ledger_id) == []
        assert world.metadata(ledger_id).password == b"secret"

    in_virtual_time(scenario)


def test_incident_4163_copies_are_taken_by_a_bookie_on_which_the_ledger_was_fenced() -> None:
    async def scenario() -> None:
        world = RepairWorld(3)
        await world.up()
        ledger_id = await world.closed_ledger((2, 2, 2), 5)
        (spare,) = set(world.bookies) - set(world.metadata(ledger_id).segments[0].bookies)
        await world.bookies[spare].fence(
            ledger_id, world.bookies[world.metadata(ledger_id).segments[0].bookies[0]].ledgers[ledger_id].master_key
        )
        await world.down(world.metadata(ledger_id).segments[0].bookies[0])
        assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
        assert world.lacks(ledger_id) == []
        assert world.bookies[spare].added == []

    in_virtual_time(scenario)


@pytest.mark.parametrize("count", [0, 1])
def test_incident_3239_ledgers_with_little_or_nothing_in_them_are_freed_of_a_lost_bookie(count: int) -> None:
    async def scenario() -> None:
        world = RepairWorld(5)
        await world.up()
        ledger_id = await world.closed_ledger((4, 2, 2), count)
        for index in range(4):
            await world.down(world.metadata(ledger_id).segments[0].bookies[index])
            assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
            assert world.lacks(ledger_id) == []
            await world.replace(f"new{index}:1")

    in_virtual_time(scenario)


def test_earlier_segments_of_an_open_ledger_are_repaired_and_its_writer_goes_on() -> None:
    async def scenario() -> None:
        world = RepairWorld(5)
        await world.up()
        writer = await world.open_ledger((2, 2, 2), 5)
        lost = world.metadata(writer.ledger_id).segments[0].bookies[0]
        await world.down(lost)
        await world.append(writer, 5)
        assert [lost in segment.bookies for segment in world.metadata(writer.ledger_id).segments] == [True, False]
        outcome = await (await world.repairer()).repair(writer.ledger_id, closes=True)
        assert outcome.state is State.WHOLE
        assert world.metadata(writer.ledger_id).state == LedgerState.OPEN
        await world.append(writer, 5)
        await writer.close()
        assert world.lacks(writer.ledger_id) == []

    in_virtual_time(scenario)


def test_an_open_ledger_that_lacks_a_bookie_is_left_to_its_writer_until_it_is_to_be_closed() -> None:
    async def scenario() -> None:
        world = RepairWorld(5)
        await world.up()
        writer = await world.open_ledger((3, 3, 2), 9)
        await world.down(world.metadata(writer.ledger_id).segments[0].bookies[0])
        repair = await world.repairer()
        assert (await repair.repair(writer.ledger_id)).state is State.OPEN
        assert world.metadata(writer.ledger_id).state == LedgerState.OPEN
        assert (await repair.repair(writer.ledger_id, closes=True)).state is State.WHOLE
        assert world.metadata(writer.ledger_id).last_entry_id == 8
        assert world.lacks(writer.ledger_id) == []

    in_virtual_time(scenario)


def test_a_replica_that_lost_entries_or_rotted_is_replaced_or_healed_in_place_where_there_is_nobody_else() -> None:
    async def scenario(spares: int) -> None:
        world = RepairWorld(3 + spares)
        await world.up()
        ledger_id = await world.closed_ledger((3, 3, 2), 20)
        one, two, three = world.metadata(ledger_id).segments[0].bookies
        world.bookies[one].lose(ledger_id, 19)
        world.bookies[two].rot(ledger_id, 19)
        assert len(world.lacks(ledger_id)) == 2
        assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
        assert world.lacks(ledger_id) == []
        assert (world.metadata(ledger_id).segments[0].bookies == (one, two, three)) == (spares == 0)

    in_virtual_time(lambda: scenario(0))
    in_virtual_time(lambda: scenario(2))


def test_damage_in_the_middle_is_found_where_so_many_percent_are_asked_for() -> None:
    async def scenario() -> None:
        world = RepairWorld(4, RepairSettings(auditor_ledger_verification_percentage=100))
        await world.up()
        ledger_id = await world.closed_ledger((3, 3, 2), 20)
        world.bookies[world.metadata(ledger_id).segments[0].bookies[1]].rot(ledger_id, 10)
        assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
        assert world.lacks(ledger_id) == []

    in_virtual_time(scenario)


def test_a_ledger_that_nobody_can_give_stays_as_it_is_and_the_reason_is_told() -> None:
    async def scenario() -> None:
        world = RepairWorld(5)
        await world.up()
        ledger_id = await world.closed_ledger((2, 2, 2), 20)
        before = world.metadata(ledger_id)
        one, two = before.segments[0].bookies
        await world.down(one)
        world.bookies[two].rot(ledger_id, 10)
        outcome = await (await world.repairer()).repair(ledger_id)
        assert outcome.state is State.LACKING
        assert "entry 10" in outcome.reasons[0]
        assert "digest" in outcome.reasons[0]
        assert world.metadata(ledger_id) == before
        await world.up(one)
        outcome = await (await world.repairer()).repair(ledger_id)
        assert outcome.state is State.WHOLE, "the damage in the middle is nobody's concern here"

    in_virtual_time(scenario)


def test_too_few_bookies_are_told_and_what_can_be_done_is_done() -> None:
    async def scenario() -> None:
        world = RepairWorld(4)
        await world.up()
        ledger_id = await world.closed_ledger((3, 3, 2), 20)
        one, two, _ = world.metadata(ledger_id).segments[0].bookies
        await world.down(one, two)
        outcome = await (await world.repairer()).repair(ledger_id)
        assert outcome.state is State.LACKING
        assert f"no bookie can take the place of {two} (lost): start another one" in outcome.reasons[0]
        assert len(set(world.metadata(ledger_id).segments[0].bookies) & set(world.writable)) == 2
        await world.replace("new:1")
        assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
        assert world.lacks(ledger_id) == []

    in_virtual_time(scenario)


@pytest.mark.parametrize("trouble", ["refuses", "hangs"])
def test_a_bookie_that_takes_no_copies_is_passed_over(trouble: str) -> None:
    async def scenario() -> None:
        world = RepairWorld(4)
        await world.up()
        ledger_id = await world.closed_ledger((2, 2, 2), 20)
        one, two = world.metadata(ledger_id).segments[0].bookies
        bad, _ = sorted(set(world.bookies) - {one, two})
        for _ in range(4):  # whichever is chosen first
            if trouble == "hangs":
                world.bookies[bad].hangs.add("add")
            else:
                world.bookies[bad].failures["add"] = BookieCode.EIO
            lost = next(name for name in world.metadata(ledger_id).segments[0].bookies if name != bad)
            await world.down(lost)
            outcome = await (await world.repairer()).repair(ledger_id)
            assert outcome.state is State.WHOLE, outcome
            assert bad not in world.metadata(ledger_id).segments[0].bookies
            assert world.lacks(ledger_id) == []
            await world.up(lost)

    in_virtual_time(scenario)


def test_a_source_that_hangs_holds_nobody_up() -> None:
    async def scenario() -> None:
        world = RepairWorld(5)
        await world.up()
        ledger_id = await world.closed_ledger((3, 3, 2), 20)
        one, two, _ = world.metadata(ledger_id).segments[0].bookies
        await world.down(one)
        world.bookies[two].hangs.add("read")
        began = asyncio.get_running_loop().time()
        assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
        assert asyncio.get_running_loop().time() - began < 100
        assert one not in world.metadata(ledger_id).segments[0].bookies
        assert two not in world.metadata(ledger_id).segments[0].bookies, "the one that hangs counts no more"

    in_virtual_time(scenario)


def test_a_deleted_ledger_is_gone_whenever_it_is_deleted() -> None:
    async def scenario() -> None:
        world = RepairWorld(4)
        await world.up()
        repair = await world.repairer()
        assert (await repair.repair(77)).state is State.GONE
        ledger_id = await world.closed_ledger((2, 2, 2), 20)
        await world.down(world.metadata(ledger_id).segments[0].bookies[0])
        for bookie in world.bookies.values():
            bookie.hold = True
        repairing = asyncio.ensure_future(repair.repair(ledger_id))
        await until(lambda: any(bookie.held for bookie in world.bookies.values()))
        await world.session().delete(ledger_path(ledger_id))
        for bookie in world.bookies.values():
            bookie.hold = False
            bookie.release()
        assert (await repairing).state is State.GONE

    in_virtual_time(scenario)


def told_before(
    original: Callable[..., "asyncio.Future[None]"], tell: Callable[[], None]
) -> Callable[..., "asyncio.Future[None]"]:
    def add(run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        tell()
        return original(run, master_key, recovery=recovery)

    return add


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # virtual time
        await asyncio.sleep(0.01)


def test_two_who_repair_one_ledger_at_once_leave_it_whole() -> None:
    async def scenario() -> None:
        world = RepairWorld(6, RepairSettings(rereplication_entry_batch_size=2))
        await world.up()
        ledger_id = await world.closed_ledger((3, 2, 2), 30)
        await world.down(world.metadata(ledger_id).segments[0].bookies[0])
        repairs = [await world.repairer() for _ in range(3)]
        outcomes = await asyncio.gather(*(repair.repair(ledger_id) for repair in repairs))
        assert [outcome.state for outcome in outcomes] == [State.WHOLE] * 3
        assert world.lacks(ledger_id) == []

    in_virtual_time(scenario)


def test_copying_is_throttled_to_so_many_bytes_a_second() -> None:
    async def scenario() -> None:
        world = RepairWorld(4, RepairSettings(replication_rate_by_bytes=1000, rereplication_entry_batch_size=5))
        await world.up()
        ledger_id = await world.closed_ledger((2, 2, 2), 100)
        lost = world.metadata(ledger_id).segments[0].bookies[0]
        size = sum(len(entry) for entry in world.bookies[lost].ledgers[ledger_id].entries.values())
        await world.down(lost)
        began = asyncio.get_running_loop().time()
        await (await world.repairer()).repair(ledger_id)
        assert size / 1000 <= asyncio.get_running_loop().time() - began < size / 1000 + 1

    in_virtual_time(scenario)


def adds_before(world: RepairWorld, limit: int) -> None:
    """After so many more recovery adds no bookie takes another."""
    left = limit

    def cut(original: Callable[..., "asyncio.Future[None]"]) -> Callable[..., "asyncio.Future[None]"]:
        def add(run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
            nonlocal left
            left -= 1
            if left < 0:
                refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                refused.set_exception(BookieError(BookieCode.EIO, run.ledger_id, "cut off"))
                return refused
            return original(run, master_key, recovery=recovery)

        return add

    for bookie in world.bookies.values():
        bookie.add = cut(bookie.add)  # type: ignore[method-assign]


@pytest.mark.parametrize("spares", [0, 2])
def test_a_repair_that_is_cut_off_anywhere_is_begun_again_and_leaves_the_ledger_whole(spares: int) -> None:
    """Also where the entries are given to a bookie that is named already: the ledger must not pass for whole in between."""

    async def scenario(limit: int) -> bool:
        world = RepairWorld(3 + spares, RepairSettings(rereplication_entry_batch_size=2))
        await world.up()
        ledger_id = await world.closed_ledger((3, 3, 2), 11)
        name = world.metadata(ledger_id).segments[0].bookies[1]
        world.bookies[name].ledgers.clear()
        originals = {name: bookie.add for name, bookie in world.bookies.items()}
        adds_before(world, limit)
        was_cut = (await (await world.repairer()).repair(ledger_id)).state is not State.WHOLE
        if was_cut:
            plan = await (await world.repairer()).look(await world.repair_client().registry.read(ledger_id))
            assert not plan.is_whole
        for each, add in originals.items():
            world.bookies[each].add = add  # type: ignore[method-assign]
        assert (await (await world.repairer()).repair(ledger_id)).state is State.WHOLE
        assert world.lacks(ledger_id) == []
        return was_cut

    cut: list[bool] = []
    for limit in range(8):

        async def one(limit: int = limit) -> None:
            cut.append(await scenario(limit))

        in_virtual_time(one)
    assert cut[0]
    assert not cut[-1]


# Recover


def test_recover_takes_a_bookie_that_is_up_out_of_every_ledger_and_tells_what_it_could_not_do() -> None:
    async def scenario() -> None:
        world = RepairWorld(4)
        await world.up()
        closed = [await world.closed_ledger((3, 3, 2), count) for count in (0, 5, 17)]
        writer = await world.open_ledger((3, 3, 2), 7)
        client = world.repair_client()
        await client.open()
        leaving = next(iter(world.bookies))
        ids = sorted(each for each in (*closed, writer.ledger_id) if names(world, each, leaving))
        dry = await recover(client, [leaving], dry_run=True)
        assert list(dry.repaired) == ids
        assert any(names(world, each, leaving) for each in ids)
        await world.repair_client("a worker").marks.lock(ids[0])
        told: list[int] = []
        locks: list[list[str]] = []
        for bookie in world.bookies.values():
            bookie.add = told_before(bookie.add, lambda: locks.append(world.locks()))  # type: ignore[method-assign]
        done = await recover(client, [leaving], report=lambda progress: told.append(progress.ledgers_left))
        assert list(done.repaired) == ids
        assert done.failed == {}
        assert {lock for each in locks for lock in each} >= {f"urL{ids[-1]:010d}"}, (
            "incident 4668: nobody collects it meanwhile"
        )
        assert world.locks() == [f"urL{ids[0]:010d}"], "that of another stays"
        assert told == list(range(len(ids), -1, -1))
        await writer.close() if writer.ledger_id not in ids else None
        for each in (*closed, writer.ledger_id):
            assert not names(world, each, leaving)
            assert world.lacks(each) == []
        assert (await recover(client, [leaving])).repaired == ()

    in_virtual_time(scenario)


def test_recover_leaves_open_ledgers_and_those_that_cannot_be_repaired_when_that_is_asked_for() -> None:
    async def scenario() -> None:
        world = RepairWorld(3)
        await world.up()
        writer = await world.open_ledger((3, 3, 2), 7)
        closed = await world.closed_ledger((3, 3, 2), 7)
        client = world.repair_client()
        await client.open()
        found = await recover(client, ["b0:1"], skips_open_ledgers=True, skips_unrecoverable_ledgers=True)
        assert found.open_left == (writer.ledger_id,)
        assert list(found.failed) == [closed]
        assert "start another one" in found.failed[closed]

    in_virtual_time(scenario)


def names(world: RepairWorld, ledger_id: int, bookie: str) -> bool:
    return any(bookie in segment.bookies for segment in world.metadata(ledger_id).segments)
