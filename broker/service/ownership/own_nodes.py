"""OwnNodes: nodes in the metadata that say that this broker owns a bundle. Owns no claim: callers keep and close theirs."""

from collections.abc import Callable
from dataclasses import dataclass

from metadata.claim_driver import Claim, acquire_lock
from metadata.sessions import Sessions
from metadata.store import MetadataStore

from .bundles import Bundle


@dataclass(frozen=True, slots=True)
class OwnNodes:
    """Store of the nodes, the session that they end with, and the value of all of them: the addresses of this broker."""

    store: MetadataStore
    sessions: Sessions
    value: bytes

    async def claim(self, bundle: Bundle, lost: Callable[[], None]) -> Claim:
        """Makes the node of a bundle. ClaimBusy: another broker has it; MetadataError. `lost`: it may be gone."""
        return await acquire_lock(self.store, self.sessions, bundle.path, self.value, lost)

    async def of_another(self, bundle: Bundle) -> bytes | None:
        """Value of the node that another broker has made; None where there is none, or one of ours."""
        found = await self.store.get(bundle.path)
        return None if found is None or found.value == self.value else found.value
