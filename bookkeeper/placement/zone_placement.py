"""ZoneawarePlacement: copies in several zones, and within a zone in several upgrade domains. Pure.

A place is `/zone/upgrade-domain`. As ZoneawareEnsemblePlacementPolicy with enforceStrictZoneawarePlacement: a bookie whose
place is unknown is not taken, each write quorum has at least `zones_min` zones, and copies that share a zone have more than
one of its upgrade domains, so that neither a zone that is lost nor a domain that is upgraded takes all copies away.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from bookkeeper.placement.rack_data import DEFAULT_ZONE_AND_UPGRADE_DOMAIN
from bookkeeper.placement.rack_placement import SpreadPlacement
from ports.rng import Rng


class ZoneawarePlacement(SpreadPlacement):
    """Satisfies `Placement`."""

    rule = "bookkeeper_minNumZonesPerWriteQuorum; places are /zone/upgrade-domain in /bookies"

    def __init__(
        self,
        place_of: Callable[[str], str],
        zones_min: int,
        rng: Rng,
        *,
        weight_of: Callable[[str], float] | None = None,
    ) -> None:
        super().__init__(place_of, zones_min, rng, is_enforced=True, is_nested=True, weight_of=weight_of)

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """See `Placement`."""
        return super().ensemble(self._placed(bookies), size, write_quorum)

    def replacement(self, ensemble: Sequence[str], index: int, write_quorum: int, candidates: Sequence[str]) -> str | None:
        """See `Placement`."""
        return super().replacement(ensemble, index, write_quorum, self._placed(candidates))

    def _placed(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._place_of(name) != DEFAULT_ZONE_AND_UPGRADE_DOMAIN]

    def _is_allowed(self, ensemble: Sequence[str], write_quorum: int) -> bool:
        return super()._is_allowed(ensemble, write_quorum) and all(
            self._has_domains_enough([ensemble[(start + step) % len(ensemble)] for step in range(write_quorum)])
            for start in range(len(ensemble))
        )

    def _has_domains_enough(self, names: Sequence[str]) -> bool:
        by_zone: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            by_zone[self._domain(self._place_of(name))].append(self._place_of(name))
        return all(len(places) == 1 or len(set(places)) > 1 for places in by_zone.values())
