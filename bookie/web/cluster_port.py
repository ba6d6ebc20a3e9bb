"""ClusterPort: the cluster as a bookie's HTTP needs it. Handed in: a bookie knows no ledger client."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class ClusterRefused(Exception):
    """The request cannot be done; the message names the thing and the remedy, `status` is that of the answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ClusterPort(Protocol):
    """Each call may raise ClusterRefused. Mappings and sequences are shown as JSON."""

    # Ledgers

    async def ledgers(self, first: int, count: int | None, *, has_metadata: bool, decodes: bool) -> Mapping[str, object]:
        """Ledgers by id; those after the first `first`, `count` at most. Without metadata the values are None."""

    async def ledger(self, ledger_id: int) -> Mapping[str, object]: ...
    async def entries(self, ledger_id: int, first: int, last: int | None, bytes_max: int) -> Mapping[str, str]:
        """Entries by id, as text; without recovery. Status 400 when they are more than `bytes_max`."""

    async def delete_ledger(self, ledger_id: int) -> None: ...

    # Bookies

    async def bookies(self, *, read_only: bool, has_hosts: bool) -> Mapping[str, str | None]:
        """The hosts by the bookies' ids, None where they are not asked for."""

    async def disk_spaces(self) -> Mapping[str, str]:
        """Free and total room of each writable bookie, and at the end of all."""

    async def summary(self) -> Mapping[str, object]: ...
    async def sanity(self) -> Mapping[str, bool]:
        """Whether a ledger could be written to this bookie and read from it (passed), or whether it is read-only."""

    # Repair

    async def is_repaired(self) -> bool:
        """Whether autorecovery is enabled."""

    async def set_repaired(self, is_enabled: bool) -> None: ...
    async def lacking(self, missing: str, excluding: str) -> Sequence[tuple[int, Sequence[str]]]:
        """Ledgers that lack copies, with the bookies that miss them."""

    async def auditor(self) -> str | None: ...
    async def trigger_audit(self) -> None: ...
    async def recovery_delay_seconds(self) -> int: ...
    async def set_recovery_delay_seconds(self, seconds: int) -> None: ...
    def start_recovery(self, bookie_ids: Sequence[str], *, deletes_cookie: bool) -> None:
        """Goes on after this has returned; what becomes of it is in the log."""

    def start_decommission(self, bookie_id: str) -> None:
        """Start a decommission, as `start_recovery` does."""
