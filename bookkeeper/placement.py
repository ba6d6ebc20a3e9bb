"""Which bookies get a new ledger. Chance is an argument."""

from collections.abc import Iterable

from bookkeeper.ledgers import LedgerError
from ports.rng import Rng


def choose_ensemble(bookies: Iterable[str], size: int, rng: Rng) -> tuple[str, ...]:
    """`size` different bookies, each as likely as any other and in any order. LedgerError when there are not so many."""
    names = sorted(bookies)
    if len(names) < size:
        raise LedgerError(f"a ledger needs {size} bookies, and there are {len(names)}")
    for at in range(size if len(names) > 1 else 0):
        other = at + int(rng.random() * (len(names) - at))
        names[at], names[other] = names[other], names[at]
    return tuple(names[:size])
