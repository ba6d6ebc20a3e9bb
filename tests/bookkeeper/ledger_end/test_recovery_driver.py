"""Recovery in the situations that were got wrong before, one by one. The numbers are those of the reliability notes."""

import asyncio

import pytest

from bookkeeper.ledger_end.recovery import Recovery
from bookkeeper.ledger_metadata.codec import (
    LedgerMetadata,
    LedgerState,
    Segment,
    decode_ledger_metadata,
    encode_ledger_metadata,
    master_key,
)
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError, LedgerFenced, LedgerUnreadable, LedgerWriter, NoSuchLedger
from metadata.store import Put
from tests.bookkeeper.fake_bookies import Cluster, batch, offsets_of, payloads_of, run, settle
from tests.bookkeeper.write.test_ledger_schedules import World, ticks
from tests.invariants import checked_after_each_step
from wire.bookie.codes import BookieCode
from wire.bookie.digests import HEADER_BYTES, DigestType, seal
from wire.run import EntryBatch, EntryRun

checked_machines = checked_after_each_step(Recovery)


async def written(cluster: Cluster, *payloads: bytes) -> LedgerWriter:
    """A ledger with these entries confirmed, one run each, and its writer."""
    writer = await cluster.writer()
    for payload in payloads:
        await writer.append(batch(payload))
    await settle()
    return writer


def state_of(cluster: Cluster, ledger_id: int) -> LedgerState:
    found = cluster.shared.tree.get(ledger_path(ledger_id))
    assert found is not None
    return decode_ledger_metadata(found.value).state


def test_a_writer_is_fenced_by_recovery_and_its_later_entries_are_refused() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a", b"bb")
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (1, 3)
        with pytest.raises(LedgerFenced):
            await writer.append(batch(b"late"))
        again = await cluster.client().open(writer.ledger_id)
        assert (again.last_entry_id, again.length_bytes) == (1, 3)
        assert payloads_of(await again.read(0, 10, 1 << 20)) == [b"a", b"bb"]

    run(scenario())


def test_a_closed_ledger_is_opened_without_fencing_and_an_unknown_one_is_not_found() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2)
        writer = await written(cluster, b"a")
        await writer.close()
        cluster.all[0].failures = {"fence": BookieCode.EIO, "add": BookieCode.EIO}
        assert (await cluster.client().open(writer.ledger_id)).last_entry_id == 0
        with pytest.raises(NoSuchLedger):
            await cluster.client().open(writer.ledger_id + 1000)

    run(scenario())


def test_f34_a_bookie_whose_fence_was_lost_is_fenced_before_its_no_such_entry_counts() -> None:
    """Entry 1 is on the first bookie, refused by the second, under way to the third, to which the fence is lost."""

    async def scenario() -> None:
        world = World((3, 3, 2))
        await world.begin()
        world.append(1)
        await world.heal()
        assert world.acknowledged == [0]
        one, two, three = world.links
        world.append(1)
        world.push(one)
        world.take(("recover", 0))
        await ticks()
        _, _, _, *recoverer = world.links
        for link in recoverer[:2]:
            world.push(link)
            world.pull(link)
        recoverer[2].cut()
        await ticks()
        for _ in range(2):  # the fence, where there is one, and the read
            for link in recoverer[1:]:
                world.push(link)
                world.pull(link)
                await ticks()
        world.push(three)
        for link in (three, one):
            world.pull(link)
        await ticks()
        assert two.requests
        await world.check()
        await world.end()

    run(scenario())


def test_two_recoverers_that_see_different_tails_end_with_the_first_one_s_end() -> None:
    """Entry 0 is on one bookie of two, unacknowledged: a recoverer that asks the other bookie first may leave it out."""

    async def scenario() -> None:
        world = World((2, 2, 2))
        await world.begin()
        world.append(1)
        world.push(world.links[0])
        world.take(("recover", 0))
        world.take(("recover", 0))
        await ticks()
        has_it, has_it_not = world.links[2:4], world.links[4:6]
        for link in (*has_it, *has_it_not):
            world.push(link)
            world.pull(link)
        await ticks()
        world.push(has_it[0])
        world.pull(has_it[0])
        for _ in range(2):  # a fence before the read, and the read
            world.push(has_it_not[1])
            world.pull(has_it_not[1])
            await ticks()
        assert [recovery.done() for recovery in world.recoveries] == [False, True]
        await world.check()
        assert world.recoveries[0].result().last_entry_id == -1

    run(scenario())


@pytest.mark.parametrize("failure", ["rot", "error"])
def test_f39_an_entry_that_cannot_be_read_fails_recovery_and_does_not_cut_the_ledger(failure: str) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1)
        one, two = cluster.all
        one.hold = two.hold = True
        writer = await written(cluster)
        appended = [writer.append(batch(payload)) for payload in (b"a", b"b", b"c")]
        two.lose(writer.ledger_id, 1)  # as if it never came: one bookie of two is enough
        one.hold = two.hold = False
        one.release()
        await asyncio.gather(*appended)
        sound = one.ledgers[writer.ledger_id].entries[1]
        if failure == "rot":
            one.rot(writer.ledger_id, 1)
        else:
            one.failures["read"] = BookieCode.EIO
        for _ in range(2):
            with pytest.raises(LedgerUnreadable, match="entry 1"):
                await cluster.client().open(writer.ledger_id)
            assert state_of(cluster, writer.ledger_id) == LedgerState.IN_RECOVERY
        one.failures.clear()
        one.ledgers[writer.ledger_id].entries[1] = sound
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (2, 3)

    run(scenario())


def test_a_single_damaged_entry_on_a_single_bookie_fails_recovery() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.all[0].hold = True
        writer = await written(cluster)
        for payload in (b"a", b"b", b"c"):
            writer.append(batch(payload))
        cluster.all[0].hold = False
        cluster.all[0].rot(writer.ledger_id, 2)
        with pytest.raises(LedgerUnreadable):
            await cluster.client().open(writer.ledger_id)

    run(scenario())


def test_a_confirmed_entry_that_is_damaged_fails_recovery_when_the_length_hangs_on_it() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a")
        writer.append(batch(b"b"))  # its header says that entry 0 is confirmed
        for bookie in cluster.all:
            bookie.rot(writer.ledger_id, 0)
        cluster.all[2].lose(writer.ledger_id, 1)
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (1, 2)
        with pytest.raises(LedgerUnreadable):
            await reader.read(0, 1, 1)

    run(scenario())


@pytest.mark.parametrize("byte", [8, 16, 23], ids=["entry id", "far ahead", "a little ahead"])
def test_a_damaged_last_entry_does_not_say_where_the_ledger_ends(byte: int) -> None:
    """Seeds 29040 and 65241 of the quorum simulation: recovery went on behind what a rotten header said was confirmed."""

    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a", b"b", b"c")
        cluster.all[0].rot(writer.ledger_id, 2, byte)
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (2, 3)

    run(scenario())


def test_a_fence_holds_though_the_last_entry_is_damaged() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a", b"b")
        cluster.all[0].rot(writer.ledger_id, 1, 16)
        cluster.all[1].failures["fence"] = BookieCode.EIO  # two fences are needed, and one of them tells nothing else
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (1, 2)

    run(scenario())


def test_the_tail_is_written_to_its_whole_write_set_again_with_the_recovery_flag_and_its_own_bytes() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a")
        await writer.append(batch(b"b", b"c"))
        one, two, three = cluster.all
        two.hangs.add("read")
        for entry_id in (1, 2):
            three.lose(writer.ledger_id, entry_id)
        await cluster.client().open(writer.ledger_id)
        await settle()
        assert [(run.first_entry_id, run.count) for run in three.recovery_added] == [(1, 2)]
        assert one.ledgers[writer.ledger_id].entries == three.ledgers[writer.ledger_id].entries
        assert one.ledgers[writer.ledger_id].fenced
        assert three.ledgers[writer.ledger_id].fenced

    run(scenario())


def test_a_hanging_bookie_of_three_does_not_hold_recovery_up() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a", b"b")
        cluster.all[1].hangs = {"fence", "read", "add"}
        reader = await cluster.client().open(writer.ledger_id)
        assert reader.last_entry_id == 1

    run(scenario())


def test_recovery_without_enough_bookies_fails_and_succeeds_when_they_are_back() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a", b"b")
        gone = {name: cluster.bookies.pop(name) for name in list(cluster.bookies)[:2]}
        with pytest.raises(LedgerError, match="too few bookies"):
            await cluster.client().open(writer.ledger_id)
        assert state_of(cluster, writer.ledger_id) == LedgerState.IN_RECOVERY
        cluster.bookies |= gone
        assert (await cluster.client().open(writer.ledger_id)).last_entry_id == 1

    run(scenario())


def test_a_wrong_master_key_ends_recovery_at_once() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await written(cluster, b"a")
        cluster.all[1].ledgers[writer.ledger_id].master_key = b"another"
        with pytest.raises(LedgerError, match="EUA"):
            await cluster.client().open(writer.ledger_id)

    run(scenario())


def test_concurrent_recoverers_agree() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 2, 2)
        writer = await written(cluster, b"a", b"b", b"c", b"d")
        readers = await asyncio.gather(*(cluster.client().open(writer.ledger_id) for _ in range(5)))
        assert {(reader.last_entry_id, reader.length_bytes) for reader in readers} == {(3, 4)}

    run(scenario())


@pytest.mark.parametrize("digest", list(DigestType))
def test_ledgers_that_apache_wrote_with_another_digest_are_recovered_and_read(digest: DigestType) -> None:
    async def scenario() -> None:
        cluster = Cluster(1, 1, 1)
        client = cluster.client("pw")
        await client.initialise()
        room, (bookie,) = HEADER_BYTES[digest], cluster.all
        buffer = bytearray(room) + b"one" + bytearray(room) + b"three"
        entries = EntryBatch(buffer, offsets_of([room + 3, room + 5]), room, 2)
        assert seal(entries, 7, 0, -1, 0, digest, b"pw") == 8
        await bookie.add(EntryRun(7, 0, buffer, entries.offsets, room), master_key(b"pw"))
        metadata = LedgerMetadata(1, 1, 1, (Segment(0, ("bookie0:3181",)),), digest_type=digest, password=b"pw")
        cluster.shared.tree.apply([Put(ledger_path(7), encode_ledger_metadata(metadata))], 0, 0)
        reader = await client.open(7)
        assert (reader.last_entry_id, reader.length_bytes) == (1, 8)
        assert payloads_of(await reader.read(0, 10, 1 << 20)) == [b"one", b"three"]
        if digest is not DigestType.DUMMY:
            bookie.rot(7, 1)
            assert payloads_of(await reader.read(0, 10, 1 << 20)) == [b"one"]
            with pytest.raises(LedgerUnreadable):
                await reader.read(1, 1, 1)

    run(scenario())
