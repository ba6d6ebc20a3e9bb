"""ManagedLedgerInfo, Apache's value of a managed ledger's node, to and from what is in memory. Pure.

A ledger that is about to be deleted stays listed, with the property DELETING, until its deletion is certain: the owner that
opens the managed ledger after a crash deletes it then, so that no ledger is orphaned. Apache does not know the property;
it sees a consumed ledger, and trims it. Unknown parts, offloading and fields of later versions, are written back as they were
found.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from managed_ledger.errors import BrokenMetadata
from managed_ledger.parsing import parse_into
from wire.generated.managed_ledger_pb2 import ManagedLedgerInfo
from wire.position import Position

DELETING = "magnetar.deleting"  # the product's first name: it is stored


@dataclass(frozen=True, slots=True)
class ListedLedger:
    """One ledger of the list. `entries` None: it was open when this was written."""

    ledger_id: int
    entries: int | None
    size_bytes: int
    closed_at_ms: int
    is_deleting: bool = False
    other: bytes = b""
    """The value as it was found, so that what only Apache knows (offloading) is kept."""


@dataclass(frozen=True, slots=True)
class LedgerList:
    """Content of a managed ledger's node, ledgers ascending."""

    ledgers: tuple[ListedLedger, ...] = ()
    terminated: Position | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    other: bytes = b""
    """The fields that only others know."""


def decode_info(name: str, value: bytes) -> LedgerList:
    """BrokenMetadata when it is not a list of ledgers."""
    info = ManagedLedgerInfo()
    parse_into(info, value, name)
    terminated = None
    if info.HasField("terminated_position"):
        terminated = Position(info.terminated_position.ledger_id, info.terminated_position.entry_id)
    properties = {pair.key: pair.value for pair in info.properties}
    ledgers = tuple(sorted(map(_listed, info.ledger_info), key=lambda ledger: ledger.ledger_id))
    _check(name, ledgers)
    for known in ("ledger_info", "terminated_position", "properties"):
        info.ClearField(known)
    return LedgerList(ledgers, terminated, properties, info.SerializeToString())


def _check(name: str, ledgers: tuple[ListedLedger, ...]) -> None:
    for before, ledger in zip((None, *ledgers), ledgers, strict=False):
        if before is not None and before.ledger_id == ledger.ledger_id:
            raise BrokenMetadata(f"{name}: its ManagedLedgerInfo lists ledger {ledger.ledger_id} twice")
        if ledger.ledger_id < 0 or (ledger.entries or 0) < 0 or ledger.size_bytes < 0:
            raise BrokenMetadata(
                f"{name}: its ManagedLedgerInfo lists ledger {ledger.ledger_id} with {ledger.entries} entries "
                f"of {ledger.size_bytes} bytes"
            )


def _listed(ledger: ManagedLedgerInfo.LedgerInfo) -> ListedLedger:
    return ListedLedger(
        ledger.ledger_id,
        ledger.entries if ledger.HasField("entries") else None,
        ledger.size,
        ledger.timestamp,
        any(pair.key == DELETING for pair in ledger.properties),
        ledger.SerializeToString(),
    )


def encode_info(
    ledgers: Iterable[ListedLedger], terminated: Position | None, properties: Mapping[str, str], other: bytes = b""
) -> bytes:
    info = ManagedLedgerInfo.FromString(other)
    for ledger in ledgers:
        _write(info.ledger_info.add(), ledger)
    if terminated is not None:
        info.terminated_position.ledger_id, info.terminated_position.entry_id = terminated
    for key, value in properties.items():
        info.properties.add(key=key, value=value)
    return info.SerializeToString()


def _write(info: ManagedLedgerInfo.LedgerInfo, ledger: ListedLedger) -> None:
    if ledger.other:
        info.ParseFromString(ledger.other)
    info.ledger_id = ledger.ledger_id
    if ledger.entries is not None:
        info.entries, info.size, info.timestamp = ledger.entries, ledger.size_bytes, ledger.closed_at_ms
    if ledger.is_deleting and not any(pair.key == DELETING for pair in info.properties):
        info.properties.add(key=DELETING, value="true")
