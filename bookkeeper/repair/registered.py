"""Registered bookies in the cluster's metadata, and their cookies. Owns no state."""

from dataclasses import dataclass

from bookkeeper.ledger_metadata.paths import AVAILABLE, READ_ONLY, ROOT
from metadata.store import MetadataStore, NoNode

COOKIES = f"{ROOT}/cookies"
_READ_ONLY_NAME = READ_ONLY.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class RegisteredBookies:
    """Ids of the bookies that have a session. One that is read-only is not lost: it gives what it has."""

    writable: frozenset[str]
    read_only: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.writable | self.read_only


async def registered_bookies(store: MetadataStore) -> RegisteredBookies:
    """MetadataError."""
    read_only = frozenset(await store.children(READ_ONLY))
    writable = frozenset(await store.children(AVAILABLE)) - {_READ_ONLY_NAME}
    return RegisteredBookies(writable - read_only, read_only)


async def delete_cookie(store: MetadataStore, bookie_id: str) -> bool:
    """Whether there was one. From then on the bookie's name is free for a bookie with empty directories."""
    try:
        await store.delete(f"{COOKIES}/{bookie_id}")
    except NoNode:
        return False
    return True
