"""Rack placement: bookies for a new ledger, and a replacement for one of them. Chance is an argument. Pure.

A place is a path: `/rack`, or the largest domain first, as `/region/rack` or `/zone/upgrade-domain`. Each write quorum is
spread: so many consecutive bookies of an ensemble hold copies of the same entry (RackawareEnsemblePlacementPolicy,
and its region- and zone-aware brothers, which look at the first name too).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from bookkeeper.ledgers import LedgerError
from ports.rng import Rng

ATTEMPTS_MAX = 8
"""Ensembles that are drawn before the best of them is taken."""


class Placement(Protocol):
    """A policy."""

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """`size` different bookies of these. LedgerError when there are not so many, or none that the policy allows."""

    def replacement(self, ensemble: Sequence[str], index: int, write_quorum: int, candidates: Sequence[str]) -> str | None:
        """One of the candidates, none of which is in the ensemble, for the place at `index`; None: none is fit."""


Weight = Callable[[str], float]
"""Relative likelihood that a bookie is chosen; more than 0."""


class AnyPlace:
    """Each bookie is as likely as any other, or as its weight says. Satisfies `Placement`."""

    def __init__(self, rng: Rng, weight_of: Weight | None = None) -> None:
        self._rng, self._weight_of = rng, weight_of

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """See `Placement`."""
        return choose_ensemble(bookies, size, self._rng, self._weight_of)

    def replacement(self, ensemble: Sequence[str], index: int, write_quorum: int, candidates: Sequence[str]) -> str | None:
        """See `Placement`."""
        return choose_one(candidates, self._rng, self._weight_of)


class SpreadPlacement:
    """Each write quorum in as many domains as can be, at least `domains_min`. Satisfies `Placement`.

    `place_of` says where a bookie is. A domain is a whole place, or with `is_nested` what its first name says: a region or
    zone, in which copies are spread too. With `is_enforced` nothing is chosen that has fewer domains; without, it is the
    best that there is. Among those that are as good, chance decides, by weight if there are weights.
    """

    rule = "bookkeeperClientMinNumRacksPerWriteQuorum; places are in /bookies"
    """Settings that an operator may change, for the text of an error."""

    def __init__(
        self,
        place_of: Callable[[str], str],
        domains_min: int,
        rng: Rng,
        *,
        is_enforced: bool = False,
        is_nested: bool = False,
        weight_of: Weight | None = None,
    ) -> None:
        self._place_of, self._domains_min, self._rng, self._weight_of = place_of, domains_min, rng, weight_of
        self._is_enforced, self._is_nested = is_enforced, is_nested

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """See `Placement`."""
        names = sorted(bookies)
        best = choose_ensemble(names, size, self._rng, self._weight_of)
        goal = self._best_spread(names, write_quorum)
        for _ in range(ATTEMPTS_MAX):
            if self._spread(best, write_quorum) >= goal:
                break
            drawn = self._drawn(choose_ensemble(names, len(names), self._rng, self._weight_of), size, write_quorum)
            best = max(best, drawn, key=lambda ensemble: self._spread(ensemble, write_quorum))
        if not self._is_allowed(best, write_quorum):
            raise LedgerError(
                f"no {size} of {len(names)} bookies put each {write_quorum} copies in {self._domains_min} domains ({self.rule})"
            )
        return best

    def replacement(self, ensemble: Sequence[str], index: int, write_quorum: int, candidates: Sequence[str]) -> str | None:
        """See `Placement`."""
        ensembles = {name: [*ensemble[:index], name, *ensemble[index + 1 :]] for name in candidates}
        spreads = {
            name: self._spread(changed, write_quorum)
            for name, changed in ensembles.items()
            if self._is_allowed(changed, write_quorum)
        }
        best = max(spreads.values(), default=None)
        return choose_one([name for name, spread in spreads.items() if spread == best], self._rng, self._weight_of)

    def _drawn(self, names: Sequence[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """One after the other, each time the first of those that share least with the bookies around."""
        left, drawn = list(names), list[str]()
        while len(drawn) < size:
            around = max(0, len(drawn) + write_quorum - size)  # the last ones share write quorums with the first
            shared = [*drawn[max(around, len(drawn) + 1 - write_quorum) :], *drawn[:around]]
            near = [self._place_of(name) for name in shared]
            name = min(left, key=lambda name: self._shared(self._place_of(name), near))
            left.remove(name)
            drawn.append(name)
        return tuple(drawn)

    def _spread(self, ensemble: Sequence[str], write_quorum: int) -> tuple[int, int]:
        """Largest domains, and whole places, in the write quorum that has fewest."""
        places = [self._place_of(name) for name in ensemble]
        size = len(places)
        windows = [[places[(start + step) % size] for step in range(write_quorum)] for start in range(size)]
        return min((len({self._domain(place) for place in window}), len(set(window))) for window in windows)

    def _best_spread(self, names: Sequence[str], write_quorum: int) -> tuple[int, int]:
        places = {self._place_of(name) for name in names}
        return min(write_quorum, len({self._domain(place) for place in places})), min(write_quorum, len(places))

    def _is_allowed(self, ensemble: Sequence[str], write_quorum: int) -> bool:
        needed = min(self._domains_min, write_quorum)
        return not self._is_enforced or self._spread(ensemble, write_quorum)[0] >= needed

    def _domain(self, place: str) -> str:
        return place.split("/")[1] if self._is_nested else place

    def _shared(self, place: str, near: Sequence[str]) -> tuple[int, int]:
        domain = self._domain(place)
        return sum(self._domain(other) == domain for other in near), sum(other == place for other in near)


def choose_one(bookies: Iterable[str], rng: Rng, weight_of: Weight | None = None) -> str | None:
    """One of them; None of none."""
    names = sorted(bookies)
    if not names:
        return None
    if weight_of is not None:
        return choose_ensemble(names, 1, rng, weight_of)[0]
    return names[int(rng.random() * len(names))]


def choose_ensemble(bookies: Iterable[str], size: int, rng: Rng, weight_of: Weight | None = None) -> tuple[str, ...]:
    """`size` different bookies, drawn one after the other: each as likely as any other that is left, or as its weight says.
    LedgerError when there are not so many."""
    names = sorted(bookies)
    if len(names) < size:
        raise LedgerError(f"a ledger needs {size} bookies, and there are {len(names)}")
    if weight_of is not None:
        lots = {name: math.log(1 - rng.random()) / weight_of(name) for name in names}  # Efraimidis and Spirakis, 2006
        return tuple(sorted(names, key=lambda name: lots[name], reverse=True)[:size])
    for at in range(size if len(names) > 1 else 0):
        other = at + int(rng.random() * (len(names) - at))
        names[at], names[other] = names[other], names[at]
    return tuple(names[:size])
