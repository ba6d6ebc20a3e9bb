"""A ledger's metadata as Apache's internal stats tell it: text that clients take apart, so it is the same to the letter."""

import asyncio

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment, encode_ledger_metadata
from broker.admin.stats.ledger_metadata import ledger_metadata_texts, safe_text
from metadata.memory import MemoryStore
from metadata.store import Put
from ports.clock import RealClock

APACHES = (
    "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1, state=CLOSED, length=12800, "
    "lastEntryId=0, digestType=CRC32C, password=OMITTED, ensembles={0=[127.0.0.1:37577]}, customMetadata={"
    "pulsar/managed-ledger=base64:cHVibGljL3ByZWFkL3BlcnNpc3RlbnQvdA==, component=base64:bWFuYWdlZC1sZWRnZXI=, "
    "application=base64:cHVsc2Fy}}"
)
CUSTOM = {"pulsar/managed-ledger": b"public/pread/persistent/t", "component": b"managed-ledger", "application": b"pulsar"}
METADATA = LedgerMetadata(1, 1, 1, (Segment(0, ("127.0.0.1:37577",)),), password=b"secret", custom_metadata=CUSTOM)


def test_the_text_is_apaches() -> None:
    assert safe_text(METADATA.closed(0, 12800)) == APACHES


def test_an_open_ledger_has_no_length_yet_and_ensembles_follow_each_other() -> None:
    changed = LedgerMetadata(2, 2, 2, (Segment(0, ("a:1", "b:2")), Segment(7, ("a:1", "c:3"))))
    assert changed.state is LedgerState.OPEN
    assert "state=OPEN, digestType=CRC32C, password=OMITTED, ensembles={0=[a:1, b:2], 7=[a:1, c:3]}" in safe_text(changed)


def test_ledger_metadata_is_found_by_id_and_absent_if_missing_or_damaged() -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        await store.commit([Put("/ledgers/00/0000/L0007", encode_ledger_metadata(METADATA.closed(0, 12800)))])
        assert await ledger_metadata_texts(store, [7, 8]) == {7: APACHES}
        await store.commit([Put("/ledgers/00/0000/L0009", b"damaged")])
        assert await ledger_metadata_texts(store, [9, 7]) == {7: APACHES}

    asyncio.run(scenario())
