"""Planted bugs of a cluster, for the cluster scenario: of taking over, of believing to own, of looking up, of stopping.

As in `simulation.planted`, which lists them: what is replaced, and by what, made from the original.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pyroaring import BitMap

from bookie.ledgers import Ledgers
from bookkeeper.ledger_end import ledger_recovery
from bookkeeper.write.quorum_tracker import QuorumTracker
from broker.service.load.load_driver import LoadDriver
from broker.service.ownership.bundles import Bundle
from broker.service.ownership.namespace_bundles import NamespaceBundles
from broker.service.ownership.ownership_driver import BundleOwnership
from broker.service.ownership.ownership_machine import Adopted
from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.cursor_driver import DurableCursor, MemoryCursor
from managed_ledger.cursor.cursor_store import CursorStore
from managed_ledger.ledgers.metadata_driver import LogMetadata
from metadata.claim import ClaimMachine, Hold, NodeGone, SessionChanged
from metadata.store import ANY_VERSION
from metadata.zookeeper.watched_trees import FollowedTrees
from simulation.quorum.plants import one_ack_is_enough


def _takeover_without_fence(fence: Any) -> Any:
    def broken(self: Ledgers, ledger_id: int) -> None:
        self.ensure(ledger_id, b"")

    return broken


def _takeover_one_short(closed: Any) -> Any:
    def broken(metadata: Any, end: Any) -> Any:
        return closed(metadata, dataclasses.replace(end, last_entry_id=max(-1, end.last_entry_id - 1)))

    return broken


def _owned_for_ever(handle: Any) -> Any:
    def broken(self: ClaimMachine, event: Any) -> Any:
        return [] if self.hold is Hold.HELD and isinstance(event, SessionChanged | NodeGone) else handle(self, event)

    return broken


def _list_whatever_its_version(put: Any) -> Any:
    async def broken(self: LogMetadata, value: bytes) -> None:
        self.version = ANY_VERSION
        await put(self, value)

    return broken


def _cursor_whatever_its_version(put: Any) -> Any:
    async def broken(self: CursorStore, ledger_id: int, state: Any) -> None:
        self._version = ANY_VERSION
        await put(self, ledger_id, state)

    return broken


def _holes_forgotten(restore: Any) -> Any:
    def broken(self: Acknowledgements, holes: Any, batches: Any, segments: Any = ()) -> None:
        restore(self, {}, (), ())

    return broken


def _holes_filled(restore: Any) -> Any:
    def broken(self: Acknowledgements, holes: Mapping[int, BitMap], *rest: Any) -> None:
        restore(self, {ledger_id: BitMap(range(ids.min(), ids.max() + 1)) for ledger_id, ids in holes.items()}, *rest)

    return broken


def _split_without_nodes(adopt: Any) -> Any:
    async def broken(self: BundleOwnership, child: Bundle) -> None:
        self._handle(Adopted(child))

    return broken


def _first_owner_named(elsewhere: Any) -> Any:
    async def broken(self: BundleOwnership, cut: Any, bundle: Bundle, listener: str, authoritative: bool) -> Any:
        answer = await elsewhere(self, cut, bundle, listener, authoritative)
        if answer is not None:
            self.named = {**getattr(self, "named", {}), bundle: answer}  # type: ignore[attr-defined]
        return getattr(self, "named", {}).get(bundle)

    return broken


def _cut_never_changes(changed: Any) -> Any:
    def broken(self: NamespaceBundles, notification: Any) -> None:
        """Keeps the bundles of a namespace as they were when this broker first asked."""

    return broken


def _deaf_after_reconnect(set_again: Any) -> Any:
    def broken(self: FollowedTrees, seen_zxid: int) -> None:
        if not self._is_set:
            set_again(self, seen_zxid)

    return broken


def _stored_too_late(stored: Any) -> Any:
    return MemoryCursor.stored


def _load_goes_on(stop: Any) -> Any:
    async def broken(self: LoadDriver) -> None:
        self._tasks = self._tasks[:1]
        await stop(self)

    return broken


CLUSTER_PLANTS: Mapping[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "takeover-without-fence": (
        "who takes a topic over does not keep the owner before from writing", Ledgers, "fence", _takeover_without_fence
    ),
    "takeover-one-short": (
        "who takes a topic over ends its last ledger one entry too early", ledger_recovery, "closed_at", _takeover_one_short
    ),
    "owned-for-ever": ("what was owned stays so when the session is lost", ClaimMachine, "handle", _owned_for_ever),
    "list-whatever-its-version": (
        "the list of a log's ledgers is written whoever wrote it last", LogMetadata, "_put", _list_whatever_its_version
    ),
    "cursor-whatever-its-version": (
        "a cursor is written whoever wrote it last", CursorStore, "_put", _cursor_whatever_its_version
    ),
    "holes-forgotten": (
        "who takes a topic over knows of a cursor only its mark", Acknowledgements, "restore", _holes_forgotten
    ),
    "holes-filled": (
        "who takes a topic over takes for acknowledged what lies between", Acknowledgements, "restore", _holes_filled
    ),
    "receipt-before-the-quorum": (
        "a receipt goes out when one bookie has the entry", QuorumTracker, "_confirm", one_ack_is_enough
    ),
    "split-without-nodes": (
        "of the parts of a bundle that was split the owner has no nodes", BundleOwnership, "_adopt", _split_without_nodes
    ),
    "first-owner-named": (
        "a lookup names the owner at the time of the first lookup", BundleOwnership, "_elsewhere", _first_owner_named
    ),
    "cut-never-changes": (
        "a broker does not hear that a bundle was split by another", NamespaceBundles, "_changed", _cut_never_changes
    ),
    "deaf-after-reconnect": (
        "what changed while the metadata was away is not told", FollowedTrees, "set_again", _deaf_after_reconnect
    ),
    "acknowledged-before-stored": (
        "an acknowledgement is answered before it is stored", DurableCursor, "stored", _stored_too_late
    ),
    "load-goes-on": ("a broker that has stopped still reports its load", LoadDriver, "stop", _load_goes_on),
}  # fmt: skip
