"""Candidates: chooses bookies among those that take new entries. Joins placement, isolation and quarantine; knows no ledger."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.isolation import IsolationGroups, MalformedIsolation, allowed, groups_of_ledger
from bookkeeper.placement.quarantine import Quarantine
from bookkeeper.placement.rack_placement import Placement
from bookkeeper.ports import BookieClient
from ports.logs import line

NO_METADATA: Mapping[str, bytes] = MappingProxyType({})

_log = logging.getLogger(__name__)


class Candidates:
    """`bookies` iterates over those that take new entries. One in quarantine is taken when there are too few others."""

    def __init__(
        self,
        bookies: Mapping[str, BookieClient],
        placement: Placement,
        quarantine: Quarantine,
        isolation: IsolationGroups | None = None,
        groups: Callable[[], Mapping[str, Collection[str]]] = dict,
    ) -> None:
        """`isolation`: of ledgers that bring no groups of their own; `groups`: the bookies of each group, now."""
        self._bookies, self._placement, self._quarantine = bookies, placement, quarantine
        self._isolation, self._groups = isolation, groups

    def ensemble(self, size: int, write_quorum: int, custom_metadata: Mapping[str, bytes] = NO_METADATA) -> tuple[str, ...]:
        """Ensemble of a new ledger. LedgerError when there are not so many, or none that the placement allows."""
        names = self._allowed(self._bookies, size, custom_metadata)
        healthy = self._healthy(names)
        if len(names) > len(healthy) >= size:
            try:
                return self._placement.ensemble(healthy, size, write_quorum)
            except LedgerError as error:
                _log.warning(line("bookies in quarantine are taken", reason=error))
        return self._placement.ensemble(names, size, write_quorum)

    def ensemble_with(
        self,
        away: Sequence[str],
        size: int,
        write_quorum: int,
        ack_quorum: int,
        custom_metadata: Mapping[str, bytes] = NO_METADATA,
    ) -> tuple[str, ...]:
        """Ensemble of a new ledger when too few bookies are here: as few as possible are away, and an ack quorum
        is here for every entry. LedgerError when that cannot be."""
        here = self._allowed(self._bookies, size, custom_metadata)
        chosen = self._placement.ensemble([*here, *away[: max(0, size - len(here))]], size, write_quorum)
        for start in range(size):
            present = sum(chosen[(start + step) % size] in here for step in range(write_quorum))
            if present < ack_quorum:
                raise LedgerError(f"an entry needs {ack_quorum} bookies, and {present} of {write_quorum} are there for some")
        return chosen

    def replacement(
        self,
        ensemble: Sequence[str],
        index: int,
        write_quorum: int,
        excluded: Collection[str],
        custom_metadata: Mapping[str, bytes] = NO_METADATA,
    ) -> str | None:
        """Bookie for the place at `index`, none of the excluded ones; None when there is none."""
        names = [name for name in self._allowed(self._bookies, len(ensemble), custom_metadata) if name not in excluded]
        healthy = self._healthy(names)
        found = self._placement.replacement(ensemble, index, write_quorum, healthy)
        if found is None and len(names) > len(healthy):
            found = self._placement.replacement(ensemble, index, write_quorum, names)
        return found

    def on_error(self, bookie: str) -> None:
        """An add or read failed there."""
        if self._quarantine.on_error(bookie, asyncio.get_running_loop().time()):
            _log.warning(line("bookie quarantined", bookie=bookie))

    def is_doubtful(self, bookie: str) -> bool:
        """Whether the bookie is in quarantine or takes no new entries: others are read first."""
        return bookie not in list(self._bookies) or self._quarantine.holds(bookie, asyncio.get_running_loop().time())

    def _allowed(self, names: Iterable[str], size: int, custom_metadata: Mapping[str, bytes]) -> list[str]:
        isolation = self._isolation
        try:
            isolation = groups_of_ledger(custom_metadata) or isolation
        except MalformedIsolation as error:
            _log.warning(line("isolation groups of a ledger cannot be read", reason=error))
        return allowed(list(names), isolation, self._groups(), size)

    def _healthy(self, names: Sequence[str]) -> list[str]:
        now = asyncio.get_running_loop().time()
        return [name for name in names if not self._quarantine.holds(name, now)]
