"""Which bookies get a new ledger, and which one takes the place of another. Chance is an argument. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from bookkeeper.ledgers import LedgerError
from ports.rng import Rng


class Placement(Protocol):
    """A policy."""

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """`size` different bookies of these. LedgerError when there are not so many, or none that the policy allows."""

    def replacement(self, ensemble: Sequence[str], index: int, write_quorum: int, candidates: Sequence[str]) -> str | None:
        """One of the candidates, none of which is in the ensemble, for the place at `index`; None for nobody."""


class AnyPlace:
    """Each bookie is as likely as any other. Satisfies `Placement`."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """See `Placement`."""
        return choose_ensemble(bookies, size, self._rng)

    def replacement(self, ensemble: Sequence[str], index: int, write_quorum: int, candidates: Sequence[str]) -> str | None:
        """See `Placement`."""
        names = sorted(candidates)
        return names[int(self._rng.random() * len(names))] if names else None


def choose_ensemble(bookies: Iterable[str], size: int, rng: Rng) -> tuple[str, ...]:
    """`size` different bookies, each as likely as any other and in any order. LedgerError when there are not so many."""
    names = sorted(bookies)
    if len(names) < size:
        raise LedgerError(f"a ledger needs {size} bookies, and there are {len(names)}")
    for at in range(size if len(names) > 1 else 0):
        other = at + int(rng.random() * (len(names) - at))
        names[at], names[other] = names[other], names[at]
    return tuple(names[:size])
