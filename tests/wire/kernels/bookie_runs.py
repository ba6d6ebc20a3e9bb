"""Runs of entries as bookies store them, and their entries one by one."""

from array import array

from tests.wire.bookie.bookie_samples import entry
from wire.run import EntryRun


def stored(run: EntryRun) -> list[bytes]:
    return [bytes(run.buffer[run.offsets[i] : run.offsets[i + 1]]) for i in range(run.count)]


def a_run(ledger_id: int, first: int, payloads: list[bytes]) -> EntryRun:
    entries = [entry(ledger_id, first + index, payload) for index, payload in enumerate(payloads)]
    ends = [sum(map(len, entries[:index])) for index in range(len(entries) + 1)]
    return EntryRun(ledger_id, first, b"".join(entries), array("I", ends), 32)
