"""The under-replication tree: which ledgers lack copies, who repairs them, and who audits. Paths and values as Apache's. Pure.

Values are protobuf's text form, as BookKeeper's ZkLedgerUnderreplicationManager writes them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

from bookkeeper.ledger_metadata.paths import ROOT
from wire.generated.ledger_metadata_pb2 import (
    AuditorVoteFormat,
    CheckAllLedgersFormat,
    LedgerRereplicationLayoutFormat,
    LockDataFormat,
    UnderreplicatedLedgerFormat,
)

M = TypeVar("M", bound=Message)

UNDERREPLICATION = f"{ROOT}/underreplication"
LEDGERS = f"{UNDERREPLICATION}/ledgers"
LOCKS = f"{UNDERREPLICATION}/locks"
LAYOUT = f"{UNDERREPLICATION}/LAYOUT"
DISABLED = f"{UNDERREPLICATION}/disable"
LOST_BOOKIE_RECOVERY_DELAY = f"{UNDERREPLICATION}/lostBookieRecoveryDelay"
CHECK_ALL_LEDGERS_CTIME = f"{UNDERREPLICATION}/checkallledgersctime"
AUDITOR_ELECTION = f"{UNDERREPLICATION}/auditorelection"
AUDITOR_VOTE_PREFIX = f"{AUDITOR_ELECTION}/V_"
LAYOUT_TYPE, LAYOUT_VERSION = "BASIC", 1
_NODE = re.compile(r"urL(\d{10,19})")


class MalformedUnderreplication(Exception):
    """A value of the tree is not what this software reads."""


@dataclass(frozen=True, slots=True)
class UnderreplicatedLedger:
    """The bookies that miss entries of a ledger (`host:port`), and since when; None: an old writer did not say."""

    missing_replicas: tuple[str, ...]
    since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HeldLedger:
    """A ledger whose lock this process has; `version` is that of the mark when it was taken."""

    ledger_id: int
    missing_replicas: tuple[str, ...]
    version: int


def ledger_path(ledger_id: int) -> str:
    """Four levels of 16 bits of the id in hexadecimal, then `urL` and ten digits."""
    levels = "/".join(f"{ledger_id >> shift & 0xFFFF:04x}" for shift in (48, 32, 16, 0))
    return f"{LEDGERS}/{levels}/{_name(ledger_id)}"


def lock_path(ledger_id: int) -> str:
    return f"{LOCKS}/{_name(ledger_id)}"


def _name(ledger_id: int) -> str:
    return f"urL{ledger_id:010d}"


def ledger_id_of(name: str) -> int | None:
    """Ledger id in the last element of either path; None when it is not one."""
    match = _NODE.fullmatch(name)
    return None if match is None else int(match[1])


def encode_ledger(ledger: UnderreplicatedLedger) -> bytes:
    return _text(UnderreplicatedLedgerFormat(replica=ledger.missing_replicas, ctime=ledger.since_ms))


def decode_ledger(data: bytes) -> UnderreplicatedLedger:
    message = _parsed(data, UnderreplicatedLedgerFormat())
    return UnderreplicatedLedger(tuple(message.replica), message.ctime if message.HasField("ctime") else None)


def merged(ledger: UnderreplicatedLedger, missing: Iterable[str]) -> UnderreplicatedLedger:
    """With the replicas that another auditor found missing, each once, the earlier ones first; the time stays."""
    replicas = dict.fromkeys((*ledger.missing_replicas, *missing))
    return UnderreplicatedLedger(tuple(replicas), ledger.since_ms)


def layout_text() -> bytes:
    return _text(LedgerRereplicationLayoutFormat(type=LAYOUT_TYPE, version=LAYOUT_VERSION))


def check_layout(data: bytes) -> None:
    """MalformedUnderreplication unless it is the one that this software knows."""
    layout = _parsed(data, LedgerRereplicationLayoutFormat())
    if (layout.type, layout.version) != (LAYOUT_TYPE, LAYOUT_VERSION):
        raise MalformedUnderreplication(f"layout {layout.type} {layout.version}, expected {LAYOUT_TYPE} {LAYOUT_VERSION}")


def encode_lock(bookie_id: str) -> bytes:
    return _text(LockDataFormat(bookieId=bookie_id))


def decode_lock(data: bytes) -> str:
    return _parsed(data, LockDataFormat()).bookieId


def encode_vote(bookie_id: str) -> bytes:
    return _text(AuditorVoteFormat(bookieId=bookie_id))


def decode_vote(data: bytes) -> str:
    return _parsed(data, AuditorVoteFormat()).bookieId


def encode_checked_all(at_ms: int) -> bytes:
    return _text(CheckAllLedgersFormat(checkAllLedgersCTime=at_ms))


def decode_checked_all(data: bytes) -> int:
    """ms since the epoch."""
    return _parsed(data, CheckAllLedgersFormat()).checkAllLedgersCTime


def _text(message: Message) -> bytes:
    return text_format.MessageToString(message).encode()


def _parsed(data: bytes, message: M) -> M:
    try:
        return text_format.Parse(data.decode(), message, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise MalformedUnderreplication(f"{data[:80]!r}: {error}") from error
