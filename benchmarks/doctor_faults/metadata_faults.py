"""Faults written into a cluster's ZooKeeper: owners and leaders that are gone, ledgers that no node names, a layout."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from benchmarks.doctor_faults.fault import FAIL, WARN, Injected
from benchmarks.doctor_faults.members import TOPIC, Members
from bookkeeper.ledger_metadata.codec import decode_ledger_metadata, encode_ledger_metadata
from bookkeeper.ledger_metadata.paths import LAYOUT
from bookkeeper.ledger_metadata.paths import ledger_path as path_of_ledger
from bookkeeper.repair.underreplication.tree import UnderreplicatedLedger, encode_ledger, ledger_path
from managed_ledger.ledgers.info import decode_info

LIST = "/managed-ledgers/public/default/persistent/orders"
OWNED = "/namespace/public/other/0x00000000_0xffffffff"
ORPHAN = 4_711
HOUR_MS = 3_600_000


def ledger_of(members: Members) -> int:
    """The first ledger of the topic."""
    return ledgers_of(members)[0]


def ledgers_of(members: Members) -> list[int]:
    """All of the topic's; the last is the one that is written."""
    value, _ = members.kazoo.get(LIST)
    return [each.ledger_id for each in decode_info(TOPIC, value).ledgers]


def marked_as_lacking(members: Members, ledger_id: int, bookie_id: str) -> None:
    """Marks a ledger as an auditor does, for as long as the fault is there."""
    path = ledger_path(ledger_id)
    members.kazoo.create(path, encode_ledger(UnderreplicatedLedger((bookie_id,), 1)), makepath=True)
    members.ending.callback(members.kazoo.delete, path)


def _orphan(members: Members) -> Injected:
    """A copy of the topic's ledger under another id, made an hour ago, which no list names."""
    value, _ = members.kazoo.get(path_of_ledger(ledger_of(members)))
    metadata = decode_ledger_metadata(value)
    aged = dataclasses.replace(metadata, created_ms=(metadata.created_ms or 0) - HOUR_MS)
    path = path_of_ledger(ORPHAN)
    members.kazoo.create(path, encode_ledger_metadata(aged), makepath=True)
    members.ending.callback(members.kazoo.delete, path)
    return members.asked(str(ORPHAN), "public/default/persistent/orders")


def _owner(members: Members) -> Injected:
    document = {"nativeUrl": "pulsar://127.0.0.1:1", "httpUrl": "http://127.0.0.1:2", "disabled": False}
    members.kazoo.create(OWNED, json.dumps(document).encode(), makepath=True)
    members.ending.callback(members.kazoo.delete, OWNED)
    return members.asked("127.0.0.1:2", OWNED)


def _leader(members: Members) -> Injected:
    """The node of the leader is replaced by one that no session of a broker holds."""
    path = "/loadbalance/leader"
    document = {"serviceUrl": "http://127.0.0.1:3", "brokerId": "127.0.0.1:3"}
    members.kazoo.set(path, json.dumps(document).encode())
    members.ending.callback(_delete, members.kazoo, path)
    return members.asked("127.0.0.1:3")


def _delete(kazoo: Any, path: str) -> None:
    """The brokers elect anew."""
    if kazoo.exists(path):
        kazoo.delete(path)


def _layout(members: Members) -> Injected:
    value, _ = members.kazoo.get(LAYOUT)
    members.kazoo.set(LAYOUT, b"9\norg.example.NewLedgerManagerFactory:7")
    members.ending.callback(members.kazoo.set, LAYOUT, value)
    return members.asked("LAYOUT")


Row = tuple[str, Callable[[Members], Injected], str, str, tuple[str, ...]]
METADATA_FAULTS: tuple[Row, ...] = (
    ("ledger that no topic names", _orphan, "orphan-ledgers", WARN, ("make sure that nobody needs it", "loses its entries")),
    ("bundle owned by a broker that is gone", _owner, "bundle-owners", FAIL, (OWNED, "is to be deleted")),
    ("leader that is no registered broker", _leader, "leader", WARN, ("/loadbalance/leader", "restart a broker")),
    ("layout of ledgers of another version", _layout, "ledger-layout", FAIL, ("run the version", "Do not format")),
)
