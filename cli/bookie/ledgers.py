"""Ledgers that a bookie may hold: those whose metadata names it. For a bookie that lost data (`bookie.start.limbo`)."""

import re

from bookkeeper.ledger_metadata.codec import MalformedLedgerMetadata, decode_ledger_metadata
from bookkeeper.ledger_metadata.layouts import LedgerLayout
from bookkeeper.ledger_metadata.paths import ROOT
from metadata.store import MetadataStore

_LEVEL = re.compile(r"\d+")


async def ledgers_of_bookie(store: MetadataStore, layout: LedgerLayout, bookie_id: str) -> list[int]:
    """Ascending; one whose metadata cannot be read counts. MetadataError: the list would not be whole."""
    found = []
    waiting = [ROOT]
    while waiting:
        path = waiting.pop()
        for name in await store.children(path):
            child = f"{path}/{name}"
            ledger_id = layout.id_at(child.removeprefix(f"{ROOT}/"))
            if ledger_id is not None:
                node = await store.get(child)
                if node is not None and _names(node.value, bookie_id):
                    found.append(ledger_id)
            elif _LEVEL.fullmatch(name):
                waiting.append(child)
    return sorted(found)


def _names(metadata: bytes, bookie_id: str) -> bool:
    try:
        return any(bookie_id in segment.bookies for segment in decode_ledger_metadata(metadata).segments)
    except MalformedLedgerMetadata:
        return True  # it may: limbo costs a repair, and a wrong "no such entry" costs entries
