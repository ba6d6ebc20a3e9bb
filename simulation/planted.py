"""Planted bugs: breaks of the promises, patched into the server's objects at run time, to prove that the simulation finds such.

Nothing in the product knows of them. Each names the scenario that is to find it.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO
from unittest.mock import patch

from pyroaring import BitMap

from bookie.journal import format_v1
from bookie.journal.journal import Journal
from bookie.ledgers import Ledgers
from bookkeeper.ledger_end import ledger_recovery
from bookkeeper.ledger_end.recovery_driver import RecoveredEnd
from bookkeeper.write import together
from broker.connection.producers import producers
from broker.connection.producers.producer_handle import ProducerHandle
from broker.connection.producers.receipts import Receipts
from broker.topic.dispatch.deliveries import Deliveries
from broker.topic.dispatch.dispatch_driver import DispatchDriver
from broker.topic.subscription import subscriptions
from managed_ledger.cursor import cursor_ledger, cursor_store
from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.cursor_driver import DurableCursor, MemoryCursor
from managed_ledger.cursor.cursor_saves import CursorSaves
from managed_ledger.cursor.cursor_store import CursorStore
from managed_ledger.cursor.holes.segment_format_v1 import encode_marker
from managed_ledger.cursor.slowest_cursor import SlowestCursor
from managed_ledger.ledgers import metadata_driver
from simulation.cluster.plants import CLUSTER_PLANTS
from simulation.cluster.scenario import run_cluster_seed
from simulation.cluster.split_scenario import run_split_seed
from simulation.ledgers.ledger_scenario import run_ledger_seed, run_torn_seed
from simulation.ledgers.log_scenario import run_log_seed
from simulation.quorum.full_repair import run_full_repair_seed
from simulation.quorum.full_repair_plants import FULL_REPAIR_PLANTS
from simulation.quorum.plants import QUORUM_PLANTS
from simulation.quorum.scenario import run_fence_seed, run_loss_seed, run_quorum_seed, run_rot_seed
from simulation.standalone.full_disk_plants import FULL_DISK_PLANTS
from simulation.standalone.full_disk_scenario import run_full_disk_seed
from simulation.standalone.scenario import run_seed
from simulation.standalone.turn_plants import (
    handed_out_and_not_sent,
    id_given_twice_in_a_read,
    log_skipped_in_a_pass,
    passed_over,
    receipt_to_another_connection,
    receipts_of_parts_out_of_order,
    sent_at_the_end_of_the_turn_alone,
)
from simulation.transfers.plants import TRANSFER_PLANTS
from simulation.transfers.scenario import run_transfer_seed
from simulation.world.outcome import Outcome
from wire.kernels.entries import checksum
from wire.run import EntryRun

Run = Callable[[int, TextIO | None], Outcome]


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug: the attribute that is replaced, and by what (made from the original). `run` is the scenario that finds it."""

    what: str
    run: Run
    target: Any
    attribute: str
    replacement: Callable[[Any], Any]

    @contextmanager
    def planted(self) -> Iterator[None]:
        original = getattr(self.target, self.attribute)
        with patch.object(self.target, self.attribute, self.replacement(original)):
            yield


def _ack_before_fsync(write: Any) -> Any:
    def broken(self: Journal, items: list[Any], *times: float) -> None:
        for _, future, _ in items:
            if future is not None and not future.done():
                future.set_result(None)
        write(self, [(record, None, error) for record, _, error in items], *times)

    return broken


def _ack_before_fsync_when_full(write: Any) -> Any:
    early = _ack_before_fsync(write)

    def broken(self: Journal, items: list[Any], *times: float) -> None:
        runs = [record for record, _, _ in items if isinstance(record, EntryRun)]
        is_full = sum(run.offsets[-1] - run.offsets[0] for run in runs) >= self._commit._group_bytes
        (early if is_full else write)(self, items, *times)

    return broken


def _receipts_out_of_order(receipts: Any) -> Any:
    kept: dict[ProducerHandle, tuple[Any, Any]] = {}

    def broken(self: ProducerHandle, run: Any, stored: Any) -> None:
        if self not in kept and run.sequence_ids[0] % 7 == 3:
            kept[self] = (run, stored)
            return
        receipts(self, run, stored)
        if self in kept:
            receipts(self, *kept.pop(self))

    return broken


def _cursor_ahead(encoded: Any) -> Any:
    def broken(self: CursorStore, state: Any) -> Any:
        mark = state.mark_delete
        return encoded(self, dataclasses.replace(state, mark_delete=mark._replace(entry_id=mark.entry_id + 1)))

    return broken


def _lost_hole(restore: Any) -> Any:
    def broken(self: Acknowledgements, holes: Mapping[int, BitMap], *rest: Any) -> None:
        restore(self, {ledger_id: BitMap(range(ids.min(), ids.max() + 1)) for ledger_id, ids in holes.items()}, *rest)

    return broken


def _fence_ignored(fence: Any) -> Any:
    def broken(self: Ledgers, ledger_id: int) -> None:
        self.ensure(ledger_id, b"")

    return broken


def _recovery_one_short(closed: Any) -> Any:
    def broken(metadata: Any, end: RecoveredEnd) -> Any:
        return closed(metadata, dataclasses.replace(end, last_entry_id=max(-1, end.last_entry_id - 1)))

    return broken


def _close_forgotten(close: Any) -> Any:
    async def broken(self: DurableCursor) -> None:
        self.stop()
        await MemoryCursor.close(self)

    return broken


def _acknowledgement_answered_early(stored: Any) -> Any:
    return MemoryCursor.stored


def _skipped_in_a_common_save(save_due: Any) -> Any:
    def broken(self: CursorSaves) -> None:
        if len(self._due) > 1:
            del self._due[next(iter(self._due))]
        save_due(self)

    return broken


def _plain_for_ever(acknowledge_entry: Any) -> Any:
    plain: set[Acknowledgements] = set()

    def broken(self: Acknowledgements, ledger_id: int, entry_id: int) -> bool:
        mark = self._mark_delete
        if self in plain:
            self._mark_delete = mark._replace(ledger_id=ledger_id)
        is_taken = acknowledge_entry(self, ledger_id, entry_id)
        if is_taken:
            plain.add(self)
        else:
            self._mark_delete = mark
        return bool(is_taken)

    return broken


def _torn_frame_accepted(decode_body: Any) -> Any:
    def broken(header: Any, body: memoryview) -> Any:
        return decode_body(dataclasses.replace(header, body_crc=checksum(body)), body)

    return broken


def _trim_under_a_cursor(mark: Any) -> Any:
    def broken(self: SlowestCursor) -> Any:
        return max((cursor.mark_delete for cursor in self._by_name.values()), default=None)

    return broken


def _deletion_forgotten(decode_info: Any) -> Any:
    def broken(name: str, value: bytes) -> Any:
        found = decode_info(name, value)
        return dataclasses.replace(found, ledgers=tuple(each for each in found.ledgers if not each.is_deleting))

    return broken


def _marker_before_segments(append_save: Any) -> Any:
    async def broken(name: str, writer: Any, plan: Any, old: Any) -> Any:
        first = writer.next_entry_id + 1
        entry_ids = list(range(first, first + len(plan.writes)))
        await cursor_ledger.append_entries(writer, [encode_marker(name, plan.state, plan.rows(entry_ids))])
        for write in plan.writes:
            payload = write.payload
            if payload is None:
                [payload] = await cursor_ledger.read_entries(old, write.copy_of, write.copy_of)
            await cursor_ledger.append_entries(writer, [payload])
        return entry_ids, 0

    return broken


BESIDE: Mapping[str, Run] = {
    "reads-do-not-fence": run_fence_seed,
    "damage-is-absence": run_rot_seed,
    "knows-after-a-loss": run_loss_seed,
    "split-without-nodes": run_split_seed,
}
"""Scenarios made for what chance alone deals to one seed in hundreds."""

PLANTED: Mapping[str, Plant] = {
    "ack-before-fsync": Plant("receipts before the journal is synced", run_seed, Journal, "_write", _ack_before_fsync),
    "ack-before-fsync-when-full": Plant(
        "receipts before the journal is synced where a group is due by its size",
        run_seed, Journal, "_write", _ack_before_fsync_when_full,
    ),
    "receipts-out-of-order": Plant(
        "a receipt overtakes another", run_seed, ProducerHandle, "receipts", _receipts_out_of_order
    ),
    "receipts-of-parts-out-of-order": Plant(
        "the receipt of a part overtakes another", run_seed, Receipts, "add", receipts_of_parts_out_of_order
    ),
    "receipt-to-another-connection": Plant(
        "receipts go to the connection that had some before", run_seed, Receipts, "flush", receipt_to_another_connection
    ),
    "passed-over": Plant(
        "a run that was just confirmed counts as delivered and is not", run_seed, DispatchDriver, "take_newest", passed_over
    ),
    "id-given-twice-in-a-read": Plant(
        "two parts that one read brought have the same entry id", run_seed, producers, "take_parts", id_given_twice_in_a_read
    ),
    "log-skipped-in-a-pass": Plant(
        "the pass over what was stored tells not all logs", run_seed, together, "store_parts", log_skipped_in_a_pass
    ),
    "handed-out-and-not-sent": Plant(
        "a part counts as handed out and is not sent", run_seed, subscriptions, "hand_out", handed_out_and_not_sent
    ),
    "sent-at-the-end-of-the-turn-alone": Plant(
        "runs that were handed out are overtaken by what their connection writes at once",
        run_seed, Deliveries, "send_first", sent_at_the_end_of_the_turn_alone,
    ),
    "cursor-ahead": Plant("the stored mark is one entry too far", run_seed, CursorStore, "encoded", _cursor_ahead),
    "lost-hole": Plant(
        "what lies between acknowledged entries is taken as such after a restart",
        run_seed, Acknowledgements, "restore", _lost_hole,
    ),
    "close-forgotten": Plant("a clean stop does not store the marks", run_seed, DurableCursor, "close", _close_forgotten),
    "acknowledgement-answered-early": Plant(
        "an acknowledgement is answered before it is stored",
        run_seed, DurableCursor, "stored", _acknowledgement_answered_early,
    ),
    "cursor-not-in-common-save": Plant(
        "of cursors that are due together one is not stored",
        run_seed, CursorSaves, "_save_due", _skipped_in_a_common_save,
    ),
    "plain-for-ever": Plant(
        "a cursor that had a plain acknowledgement takes all for plain, also while mark-delete is in an older ledger",
        run_seed, Acknowledgements, "acknowledge_entry", _plain_for_ever,
    ),
    "fence-ignored": Plant("a fenced ledger takes adds", run_ledger_seed, Ledgers, "fence", _fence_ignored),
    "recovery-one-short": Plant(
        "recovery closes a ledger one entry too early", run_ledger_seed, ledger_recovery, "closed_at", _recovery_one_short
    ),
    "torn-frame-accepted": Plant(
        "a journal frame is replayed whatever its checksum", run_torn_seed, format_v1, "decode_body", _torn_frame_accepted
    ),
    "trim-under-a-cursor": Plant(
        "ledgers go that only one of the cursors has consumed", run_log_seed, SlowestCursor, "mark", _trim_under_a_cursor
    ),
    "marker-before-segments": Plant(
        "a save of holes counts before all of it is stored", run_log_seed, cursor_store, "append_save", _marker_before_segments
    ),
    "deletion-forgotten": Plant(
        "a crash between list and deletion orphans a ledger", run_log_seed, metadata_driver, "decode_info", _deletion_forgotten
    ),
    **{
        name: Plant(what, BESIDE.get(name, run_quorum_seed), target, attribute, replacement)
        for name, (what, target, attribute, replacement) in QUORUM_PLANTS.items()
    },
    **{
        name: Plant(what, BESIDE.get(name, run_cluster_seed), target, attribute, replacement)
        for name, (what, target, attribute, replacement) in CLUSTER_PLANTS.items()
    },
    **{
        name: Plant(what, run_full_repair_seed, target, attribute, replacement)
        for name, (what, target, attribute, replacement) in FULL_REPAIR_PLANTS.items()
    },
    **{
        name: Plant(what, run_full_disk_seed, target, attribute, replacement)
        for name, (what, target, attribute, replacement) in FULL_DISK_PLANTS.items()
    },
    **{
        name: Plant(what, run_transfer_seed, target, attribute, replacement)
        for name, (what, target, attribute, replacement) in TRANSFER_PLANTS.items()
    },
}  # fmt: skip
