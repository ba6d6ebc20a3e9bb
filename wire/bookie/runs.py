"""Runs that kernels take from one socket read of the bookie protocol, version 2: like requests, or like responses.

A packet header is `version << 24 | opcode << 16 | flags`; a response has its request's version and opcode and no flags.
"""

from wire.record import record
from wire.run import EntryMix, EntryRun


@record(frozen=True, slots=True)
class AddRun:
    """Consecutive adds to one ledger with the same header and key. `entries` owns a copy; `end` is after the last frame."""

    header: int
    master_key: bytes
    entries: EntryRun
    end: int


@record(frozen=True, slots=True)
class AddMix:
    """Adds to any ledgers with the same header and key, as they came. `entries` owns a copy; `end` is after the last frame."""

    header: int
    master_key: bytes
    entries: EntryMix
    end: int


@record(frozen=True, slots=True)
class ReadRun:
    """Consecutive plain reads of consecutive entries of one ledger."""

    header: int
    ledger_id: int
    first_entry_id: int
    count: int
    end: int


@record(frozen=True, slots=True)
class AddedRun:
    """Consecutive responses of consecutive adds to one ledger, all with the same code."""

    code: int
    ledger_id: int
    first_entry_id: int
    count: int
    end: int
