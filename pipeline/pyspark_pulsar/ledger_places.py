"""Bookies of each entry of a ledger, as its metadata tells. Pure.

Entry i of an ensemble of E bookies is on those from i mod E on, as many as the write quorum (RoundRobinDistributionSchedule).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

DIGEST_BYTES = {"CRC32C": 4, "CRC32": 8, "DUMMY": 0}
"""Digests that can be verified without the ledger's password, with their length."""

_MEMBER = re.compile(r"(\w+)=([\w.]+)")
_ENSEMBLE = re.compile(r"(\d+)=\[([^\]]*)\]")
_ADDRESS = re.compile(r"[^:/\s]+:\d{1,5}")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The bookies, as host:port, of the entries from this one on up to the next ensemble's."""

    first_entry_id: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerPlaces:
    """Bookies of a closed ledger: nothing is added to it, and its last entry is certain."""

    ledger_id: int
    write_quorum: int
    digest: str
    ensembles: tuple[Ensemble, ...]
    is_closed: bool = True
    inside: frozenset[str] = frozenset()
    """The bookies that are inside a broker's process: no server, or another one, listens at their addresses."""

    @property
    def bookies(self) -> frozenset[str]:
        return frozenset(name for each in self.ensembles for name in each.bookies)

    def replicas(self, entry_id: int) -> tuple[str, ...]:
        """Bookies that have the entry, in the order of the ensemble."""
        chosen = self.ensembles[0]
        for each in self.ensembles:
            if each.first_entry_id <= entry_id:
                chosen = each
        count = len(chosen.bookies)
        return tuple(chosen.bookies[(entry_id + step) % count] for step in range(min(self.write_quorum, count)))

    def is_same_everywhere(self) -> bool:
        """Every bookie of an ensemble has all of its entries."""
        return all(len(each.bookies) <= self.write_quorum for each in self.ensembles)


def parse_places(ledger_id: int, text: str) -> LedgerPlaces | None:
    """Places in the text of internal stats (LedgerMetadataImpl.toSafeString).

    None where the ledger is being recovered, its bookies go by names that are no addresses, or its digest needs the password.
    """
    head, _, rest = text.partition("ensembles={")
    members = dict(_MEMBER.findall(head))
    ensembles = tuple(_ensembles(rest.partition("}")[0]))
    is_addressed = all(each.bookies and all(_ADDRESS.fullmatch(bookie) for bookie in each.bookies) for each in ensembles)
    quorum, digest = members.get("writeQuorumSize", ""), members.get("digestType", "")
    if (
        members.get("state") not in ("CLOSED", "OPEN")
        or digest not in DIGEST_BYTES
        or not ensembles
        or not is_addressed
        or not quorum.isdigit()
    ):
        return None
    return LedgerPlaces(ledger_id, int(quorum), digest, ensembles, members["state"] == "CLOSED")


def _ensembles(text: str) -> Iterator[Ensemble]:
    for first, bookies in _ENSEMBLE.findall(text):
        yield Ensemble(int(first), tuple(each.strip() for each in bookies.split(",") if each.strip()))
