"""Writing, reading and closing a ledger."""

import asyncio
import contextlib
import struct
from collections.abc import Iterable
from functools import partial

import pytest

from bookkeeper.ledgers import EntryLost, LedgerClosed, LedgerError, LedgerFenced, LedgerUnreadable, NoSuchEntry, NoSuchLedger
from tests.bookkeeper.fake_bookies import Cluster, batch, payloads_of, run, settle
from wire.bookie.codes import BookieCode
from wire.run import EntryBatch, EntryRun


def done(futures: Iterable["asyncio.Future[EntryRun]"]) -> list[bool]:
    return [future.done() for future in futures]


def completions(futures: Iterable["asyncio.Future[EntryRun]"]) -> list[int]:
    """Fills with the indexes of the futures in the order in which they complete."""
    completed: list[int] = []
    for number, future in enumerate(futures):
        future.add_done_callback(partial(lambda number, _: completed.append(number), number))
    return completed


def test_appended_entries_are_read_back_by_the_writer_and_after_close_by_others() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        client = cluster.client()
        await client.initialise()
        writer = await client.create({"application": b"pulsar"})
        first = await writer.append(batch(b"a", b"bb"))
        second = await writer.append(batch(b"ccc"))
        assert (first.first_entry_id, first.count, second.first_entry_id) == (0, 2, 2)
        assert (writer.next_entry_id, writer.last_add_confirmed, writer.length_bytes) == (3, 2, 6)
        assert payloads_of(await writer.read(0, 10, 1 << 20)) == [b"a", b"bb", b"ccc"]
        await writer.close()
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (2, 6)
        assert payloads_of(await reader.read(1, 1, 1)) == [b"bb"]
        assert not cluster.all[0].ledgers[writer.ledger_id].fenced
        with pytest.raises(NoSuchEntry):
            await reader.read(3, 1, 1)
        with pytest.raises(NoSuchEntry):
            await reader.read(-1, 1, 1)

    run(scenario())


def test_headers_hold_the_length_so_far_and_what_was_confirmed_when_they_were_sealed() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        (bookie,) = cluster.all
        bookie.hold = True
        writer = await cluster.client().create({})
        futures = [writer.append(batch(b"a", b"bb")), writer.append(batch(b"ccc"))]
        await settle()
        bookie.release(1)
        await settle()
        assert done(futures) == [True, False]
        writer.append(batch(b"dddd"))
        headers = [struct.unpack_from(">4q", entry) for entry in bookie.ledgers[writer.ledger_id].entries.values()]
        assert headers == [
            (writer.ledger_id, 0, -1, 1),
            (writer.ledger_id, 1, -1, 3),
            (writer.ledger_id, 2, -1, 6),
            (writer.ledger_id, 3, 1, 10),
        ]

    run(scenario())


def test_futures_complete_in_entry_order_at_the_ack_quorum_whatever_order_the_bookies_answer_in() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        for bookie in cluster.all:
            bookie.hold = True
        writer = await cluster.client().create({})
        futures = [writer.append(batch(b"%d" % number)) for number in range(3)]
        completed = completions(futures)
        one, two, three = cluster.all
        for answer in (*one.held[1:], *two.held[1:]):  # an ack quorum for the second and third, one ack for the first
            answer()
        one.held[0]()
        await settle()
        assert completed == []
        assert writer.last_add_confirmed == -1
        three.held[0]()
        await settle()
        assert completed == [0, 1, 2]
        assert writer.last_add_confirmed == 2

    run(scenario())


def test_striped_entries_go_to_their_own_write_sets_and_confirm_in_order() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 2, 2)
        writer = await cluster.writer()
        stored = await writer.append(batch(b"0", b"1", b"2", b"3"))
        assert stored.count == 4
        holders = sorted(sorted(bookie.ledgers[writer.ledger_id].entries) for bookie in cluster.all)
        assert holders == sorted([[0, 2, 3], [0, 1, 3], [1, 2]])
        read: list[bytes] = []
        while len(read) < 4:
            read += payloads_of(await writer.read(len(read), 10, 1 << 20))
        assert read == [b"0", b"1", b"2", b"3"]
        await writer.close()

    run(scenario())


@pytest.mark.parametrize(("code", "error"), [(BookieCode.EFENCED, LedgerFenced), (BookieCode.EUA, LedgerError)])
def test_a_refusal_that_is_final_fails_the_writer_even_when_the_quorum_stands(
    code: BookieCode, error: type[LedgerError]
) -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        cluster.all[2].failures["add"] = code
        writer = await cluster.client().create({})
        await asyncio.wait([writer.append(batch(b"a"))])
        await settle()
        with pytest.raises(error):
            await writer.append(batch(b"b"))

    run(scenario())


def test_a_broken_quorum_fails_every_pending_append_in_order_and_every_later_one() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await cluster.writer()
        await writer.append(batch(b"stored"))
        one, two, _ = cluster.all
        one.hold = True
        one.failures["add"] = two.failures["add"] = BookieCode.EIO
        futures = [writer.append(batch(b"%d" % number)) for number in range(3)]
        completed = completions(futures)
        await settle()
        assert completed == []
        one.release(1)
        assert all(isinstance(each, LedgerError) for each in await asyncio.gather(*futures, return_exceptions=True))
        assert completed == [0, 1, 2]
        with pytest.raises(LedgerClosed):
            await writer.append(batch(b"later"))
        with pytest.raises(LedgerError):
            await writer.close()
        assert writer.last_add_confirmed == 0
        one.failures.clear()
        two.failures.clear()
        reader = await cluster.client().open(writer.ledger_id)  # the metadata was left open: recovery decides
        assert payloads_of(await reader.read(0, 1, 1 << 20)) == [b"stored"]

    run(scenario())


def test_one_failed_bookie_of_three_is_borne_at_an_ack_quorum_of_two() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await cluster.writer()
        cluster.all[1].failures["add"] = BookieCode.EIO
        for number in range(5):
            await writer.append(batch(b"%d" % number))
        await writer.close()
        assert (await cluster.client().open(writer.ledger_id)).last_entry_id == 4

    run(scenario())


def test_close_waits_for_pending_appends_and_refuses_new_ones() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        client = cluster.client()
        await client.initialise()
        (bookie,) = cluster.all
        bookie.hold = True
        writer = await client.create({})
        pending = [writer.append(batch(b"a")), writer.append(batch(b"b"))]
        pending[0].cancel()  # its caller does not care; the entry is stored all the same
        closing = asyncio.ensure_future(writer.close())
        await settle()
        assert not closing.done()
        with pytest.raises(LedgerClosed):
            await writer.append(batch(b"c"))
        bookie.release()
        await closing
        await writer.close()
        assert pending[1].done()
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (1, 2)

    run(scenario())


def test_an_empty_ledger_closes_and_opens() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2)
        client = cluster.client()
        await client.initialise()
        closed, open_ = await client.create({}), await client.create({})
        await closed.close()
        for writer in (closed, open_):
            reader = await cluster.client().open(writer.ledger_id)
            assert (reader.last_entry_id, reader.length_bytes) == (-1, 0)
        with pytest.raises(LedgerFenced):
            await open_.append(batch(b"late"))
        with pytest.raises(LedgerFenced):
            await open_.close()

    run(scenario())


def test_an_idle_writer_cannot_close_a_ledger_that_another_client_recovered() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        client = cluster.client()
        await client.initialise()
        writer = await client.create({})
        await writer.append(batch(b"a"))
        reader = await cluster.client().open(writer.ledger_id)
        await writer.close()  # the same end: nothing to say
        assert reader.last_entry_id == 0
        other = await client.create({})
        pending = other.append(batch(b"x"))
        cluster.all[0].lose(other.ledger_id, 0)
        assert (await cluster.client().open(other.ledger_id)).last_entry_id == -1
        await pending
        with pytest.raises(LedgerFenced):
            await other.close()

    run(scenario())


def test_a_writer_reads_only_what_is_confirmed() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.all[0].hold = True
        writer = await cluster.client().create({})
        writer.append(batch(b"a"))
        writer.append(batch(b"b"))
        with pytest.raises(NoSuchEntry):
            await writer.read(0, 1, 1)
        cluster.all[0].release(1)
        await settle()
        assert payloads_of(await writer.read(0, 10, 1 << 20)) == [b"a"]

    run(scenario())


def test_a_damaged_copy_is_read_from_the_next_replica_and_a_lost_one_is_unreadable() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2)
        client = cluster.client()
        await client.initialise()
        writer = await client.create({})
        await writer.append(batch(b"a", b"b", b"c"))
        await writer.close()
        reader = await client.open(writer.ledger_id)
        one, two = cluster.all
        one.rot(writer.ledger_id, 1)
        two.rot(writer.ledger_id, 2)
        read: list[bytes] = []
        while len(read) < 3:
            read += payloads_of(await reader.read(len(read), 10, 1 << 20))
        assert read == [b"a", b"b", b"c"]
        two.lose(writer.ledger_id, 1)
        with pytest.raises(EntryLost):
            await reader.read(1, 1, 1)
        one.lose(writer.ledger_id, 1)  # both promise that it never was: the metadata knows better
        with pytest.raises(EntryLost):
            await reader.read(1, 1, 1)
        two.failures["read"] = BookieCode.ETOOMANYREQUESTS
        with pytest.raises(LedgerUnreadable) as busy:
            await reader.read(1, 1, 1)
        assert not isinstance(busy.value, EntryLost), "one of them has not said what it has"
        two.failures.clear()
        del cluster.bookies["bookie0:3181"]
        with pytest.raises(LedgerUnreadable) as away:
            await reader.read(1, 1, 1)
        assert not isinstance(away.value, EntryLost)
        assert payloads_of(await reader.read(0, 1, 1)) == [b"a"]

    run(scenario())


def test_a_batch_that_cannot_be_sealed_changes_nothing() -> None:
    async def scenario() -> None:
        writer = await Cluster().client().create({})
        for bad in (batch(), EntryBatch(bytearray(10), batch(b"a").offsets, 36, 1)):
            with pytest.raises(ValueError):  # noqa: PT011  # the kernel's words are its own
                writer.append(bad)
        assert writer.next_entry_id == 0
        assert (await writer.append(batch(b"a"))).first_entry_id == 0

    run(scenario())


def test_deleted_ledgers_are_gone_with_their_empty_parents() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        client = cluster.client()
        await client.initialise()
        one, two = await client.create({}), await client.create({})
        await one.close()
        await client.delete(one.ledger_id)
        with pytest.raises(NoSuchLedger):
            await client.open(one.ledger_id)
        assert cluster.shared.tree.children("/ledgers/00") == ["0000"]
        await client.delete(two.ledger_id)
        await client.delete(two.ledger_id)
        assert not cluster.shared.tree.exists("/ledgers/00")

    run(scenario())


def test_a_ledger_with_another_password_is_refused() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        client = cluster.client("secret")
        await client.initialise()
        writer = await client.create({})
        await writer.append(batch(b"a"))
        with pytest.raises(LedgerError, match="password"):
            await cluster.client("guess").open(writer.ledger_id)
        assert (await cluster.client("secret").open(writer.ledger_id)).last_entry_id == 0

    run(scenario())


def test_too_few_bookies_for_an_ensemble_is_said_so() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        del cluster.bookies["bookie1:3181"]
        with pytest.raises(LedgerError, match="needs 3 bookies, and there are 2"):
            await cluster.client().create({})

    run(scenario())


def test_a_bug_in_a_bookie_client_fails_the_writer_and_is_not_hidden() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        writer = await cluster.client().create({})
        seen: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))

        def broken(*_: object, **__: object) -> "asyncio.Future[None]":
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.set_exception(ZeroDivisionError())
            return future

        with contextlib.suppress(AttributeError):
            cluster.all[0].add = broken  # type: ignore[method-assign]
        with pytest.raises(LedgerError, match="ZeroDivisionError"):
            await writer.append(batch(b"a"))
        assert isinstance(seen[0], ZeroDivisionError)

    run(scenario())
