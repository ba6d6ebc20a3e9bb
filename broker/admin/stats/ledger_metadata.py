"""Metadata of a ledger, in the text that Apache's internal stats have (LedgerMetadataImpl.toSafeString).

Clients that read straight from bookies learn the bookies of a ledger from it. The password is never in it.
"""

from base64 import b64encode
from collections.abc import Iterable

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, MalformedLedgerMetadata, decode_ledger_metadata
from bookkeeper.ledger_metadata.layouts import HIERARCHICAL, UnknownLayout, parse_layout
from bookkeeper.ledger_metadata.paths import LAYOUT, ROOT
from metadata.store import MetadataError, MetadataStore


async def ledger_metadata_texts(store: MetadataStore, ledger_ids: Iterable[int]) -> dict[int, str]:
    """Returns the texts by ledger; unreadable ones are left out."""
    try:
        found = await store.get(LAYOUT)
        layout = HIERARCHICAL if found is None else parse_layout(found.value)
    except (MetadataError, UnknownLayout):
        return {}
    texts = {ledger_id: await _text(store, layout.path(ROOT, ledger_id)) for ledger_id in ledger_ids}
    return {ledger_id: text for ledger_id, text in texts.items() if text is not None}


async def _text(store: MetadataStore, path: str) -> str | None:
    try:
        found = await store.get(path)
        return None if found is None else safe_text(decode_ledger_metadata(found.value))
    except (MetadataError, MalformedLedgerMetadata):
        return None


def safe_text(metadata: LedgerMetadata) -> str:
    """`LedgerMetadata{formatVersion=3, ensembleSize=2, ..., ensembles={0=[host:port, ...]}, ...}`."""
    closed = [f"length={metadata.length_bytes}", f"lastEntryId={metadata.last_entry_id}"]
    ensembles = ", ".join(f"{each.first_entry_id}=[{', '.join(each.bookies)}]" for each in metadata.segments)
    custom = ", ".join(f"{key}=base64:{b64encode(value).decode()}" for key, value in metadata.custom_metadata.items())
    members = [
        f"formatVersion={metadata.format_version}",
        f"ensembleSize={metadata.ensemble_size}",
        f"writeQuorumSize={metadata.write_quorum}",
        f"ackQuorumSize={metadata.ack_quorum}",
        f"state={metadata.state.name}",
        *(closed if metadata.state is LedgerState.CLOSED else []),
        f"digestType={_DIGESTS.get(metadata.digest_type.name, metadata.digest_type.name)}",
        "password=OMITTED",
        f"ensembles={{{ensembles}}}",
        f"customMetadata={{{custom}}}",
    ]
    return f"LedgerMetadata{{{', '.join(members)}}}"


_DIGESTS = {"HMAC": "MAC"}
