"""Settings of the ledger client, under Apache's keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from bookkeeper.placement.disk_weights import DiskWeights
from bookkeeper.placement.isolation import IsolationGroups
from bookkeeper.placement.quarantine import QuarantineRule
from bookkeeper.placement.rack_data import DEFAULT_REGION_AND_RACK, DEFAULT_ZONE_AND_UPGRADE_DOMAIN, RackData
from bookkeeper.placement.rack_placement import AnyPlace, Placement, SpreadPlacement
from bookkeeper.placement.zone_placement import ZoneawarePlacement
from bookkeeper.ports import BookieClient
from metadata.store import MetadataStore
from ports.rng import Rng
from wire.bookie.digests import DigestType

DIGEST_TYPES = {
    "CRC32": DigestType.CRC32,
    "MAC": DigestType.HMAC,
    "CRC32C": DigestType.CRC32C,
    "DUMMY": DigestType.DUMMY,
}
"""The names of BookKeeper.DigestType; the metadata has others."""
RACKS = "RackawareEnsemblePlacementPolicy"
REGIONS = "RegionAwareEnsemblePlacementPolicy"
ZONES = "ZoneawareEnsemblePlacementPolicy"
ANYWHERE = "DefaultEnsemblePlacementPolicy"
POLICIES = (RACKS, REGIONS, ZONES, ANYWHERE)
PLACES = {REGIONS: DEFAULT_REGION_AND_RACK, ZONES: DEFAULT_ZONE_AND_UPGRADE_DOMAIN}
"""Place of a bookie that `/bookies` does not name, by placement policy."""
REGIONS_MIN = 2
"""BookKeeper's reppMinimumRegionsForDurability, which Pulsar has no key for."""


@dataclass(frozen=True, slots=True)
class BookKeeperSettings:
    """Settings of new ledgers, and of the choice of bookies. Ensemble >= write quorum >= ack quorum >= 1."""

    managed_ledger_default_ensemble_size: int = 2
    """Bookies over which the entries of a new ledger are spread. More than the write quorum: entries are striped."""
    managed_ledger_default_write_quorum: int = 2
    """Bookies that each entry is written to: so many copies there are."""
    managed_ledger_default_ack_quorum: int = 2
    """Copies that must be on disk before a publish is confirmed."""
    managed_ledger_digest_type: str = "CRC32C"
    """CRC32, MAC, CRC32C or DUMMY (none). Others than CRC32C cost a copy and a slow loop."""
    managed_ledger_password: str = ""
    """The password that new ledgers are made with; who opens them later must have the same."""
    bookkeeper_delay_ensemble_change: bool = False
    """A bookie that fails is replaced only when too few others are left, not at once (BookKeeper's delayEnsembleChange)."""
    bookkeeper_add_entry_quorum_timeout_sec: int = 0
    """A writer ends when an append has no ack quorum after so long (BookKeeper's addEntryQuorumTimeoutSec). 0: never."""
    managed_ledger_add_entry_timeout_seconds: int = 0
    """The same, where it is shorter: the ledger that follows gets what the bookies of this one did not take. 0: never."""
    managed_ledger_read_entry_timeout_seconds: int = 0
    """A read that no replica has answered after so long fails; who reads tries again. 0: bookies' own time limits alone."""
    bookkeeper_use_v2_wire_protocol: bool = True
    """Entries go over version 2 of the bookie protocol. What only version 3 has works with it too: over another connection."""
    bookkeeper_explicit_lac_interval_in_mills: int = 0
    """Interval at which readers of a ledger that is written are told the last confirmed entry. 0: only by the entries
    themselves."""
    bookkeeper_enable_sticky_reads: bool = True
    """A reader asks one bookie as long as that answers, where all have all entries."""
    bookkeeper_client_speculative_read_timeout_in_millis: int = 0
    """After which the next replica is asked too. 0: never."""
    bookkeeper_client_reorder_read_sequence_enabled: bool = False
    """Bookies in quarantine, read-only or away are read last."""
    bookkeeper_client_health_check_enabled: bool = True
    """Bookies that fail often are not chosen for a while, unless there are too few others."""
    bookkeeper_client_health_check_interval_seconds: int = 60
    """The period in which the failures of a bookie are counted."""
    bookkeeper_client_health_check_error_threshold_per_interval: int = 5
    """Failures in one such period that put a bookie into quarantine."""
    bookkeeper_client_health_check_quarantine_time_in_seconds: int = 1800
    """Time for which a bookie in quarantine is not chosen for new ledgers."""
    bookkeeper_client_quarantine_ratio: float = 1.0
    """The chance that a bookie which has failed too often is put into quarantine: 1.0 is always, 0.5 every other time."""
    bookkeeper_client_rackaware_policy_enabled: bool = True
    """Copies are spread over the racks that `/bookies` names, as far as there are as many."""
    bookkeeper_client_regionaware_policy_enabled: bool = False
    """Places are `/region/rack`, and copies are spread over regions first."""
    bookkeeper_client_min_num_racks_per_write_quorum: int = 2
    """Racks over which the copies of an entry are spread, where there are as many."""
    bookkeeper_client_enforce_min_num_racks_per_write_quorum: bool = False
    """No ledger is made, and no bookie replaced, where that would put copies in fewer racks."""
    bookkeeper_ensemble_placement_policy: str = ""
    """A class of org.apache.bookkeeper.client, with or without its package: RackawareEnsemblePlacementPolicy,
    RegionAwareEnsemblePlacementPolicy, ZoneawareEnsemblePlacementPolicy or DefaultEnsemblePlacementPolicy. Empty: as the keys
    above say."""
    bookkeeper_min_num_zones_per_write_quorum: int = 2
    """With ZoneawareEnsemblePlacementPolicy, whose places are `/zone/upgrade-domain`; always enforced."""
    bookkeeper_client_isolation_groups: tuple[str, ...] = ()
    """Groups of `/bookies` on whose bookies ledgers are stored. Empty: on all."""
    bookkeeper_client_secondary_isolation_groups: tuple[str, ...] = ()
    """Taken too when too few bookies of the first ones are there; after them, bookies without a group."""
    bookkeeper_disk_weight_based_placement_enabled: bool = False
    """Bookies with more free disk are chosen more often. Works with either version of the protocol."""
    bookkeeper_client_get_bookie_info_interval_seconds: int = 86400
    """Interval at which bookies are asked for their free disk."""
    bookkeeper_client_get_bookie_info_retry_interval_seconds: int = 60
    """The same for new ones and for those that did not answer."""

    def __post_init__(self) -> None:
        ensemble, write, ack = (
            self.managed_ledger_default_ensemble_size,
            self.managed_ledger_default_write_quorum,
            self.managed_ledger_default_ack_quorum,
        )
        if not ensemble >= write >= ack >= 1:
            raise ValueError(
                f"managedLedgerDefaultEnsembleSize={ensemble}, -WriteQuorum={write}, -AckQuorum={ack}: "
                "each must be at least the next, and the last at least 1"
            )
        if self.managed_ledger_digest_type not in DIGEST_TYPES:
            raise ValueError(f"managedLedgerDigestType={self.managed_ledger_digest_type}: expected {', '.join(DIGEST_TYPES)}")
        self._check_policy()

    def _check_policy(self) -> None:
        if self.policy not in POLICIES:
            named = self.bookkeeper_ensemble_placement_policy
            raise ValueError(f"bookkeeper_ensemblePlacementPolicy={named}: expected {', '.join(POLICIES)}")
        ensemble, write = self.managed_ledger_default_ensemble_size, self.managed_ledger_default_write_quorum
        zones = self.bookkeeper_min_num_zones_per_write_quorum
        if self.policy == ZONES and (ensemble % write or write <= zones):
            raise ValueError(
                f"{ZONES}: managedLedgerDefaultEnsembleSize={ensemble} must be a multiple of -WriteQuorum={write}, and that "
                f"more than bookkeeper_minNumZonesPerWriteQuorum={zones}: or a zone that is lost leaves no place for its copies"
            )

    @property
    def digest_type(self) -> DigestType:
        return DIGEST_TYPES[self.managed_ledger_digest_type]

    @property
    def add_timeout_seconds(self) -> int:
        """0: none."""
        both = (self.bookkeeper_add_entry_quorum_timeout_sec, self.managed_ledger_add_entry_timeout_seconds)
        return min((seconds for seconds in both if seconds > 0), default=0)

    @property
    def quarantine_rule(self) -> QuarantineRule | None:
        """None: no bookie is ever quarantined."""
        if not self.bookkeeper_client_health_check_enabled:
            return None
        return QuarantineRule(
            self.bookkeeper_client_health_check_error_threshold_per_interval,
            self.bookkeeper_client_health_check_interval_seconds,
            self.bookkeeper_client_health_check_quarantine_time_in_seconds,
            self.bookkeeper_client_quarantine_ratio,
        )

    @property
    def policy(self) -> str:
        """One of POLICIES, if it is right."""
        named = self.bookkeeper_ensemble_placement_policy.rpartition(".")[2]
        if named:
            return named
        if self.bookkeeper_client_regionaware_policy_enabled:
            return REGIONS
        return RACKS if self.bookkeeper_client_rackaware_policy_enabled else ANYWHERE

    @property
    def isolation(self) -> IsolationGroups | None:
        """Isolation groups of ledgers that bring none of their own; None: they are stored anywhere."""
        primary, secondary = self.bookkeeper_client_isolation_groups, self.bookkeeper_client_secondary_isolation_groups
        return IsolationGroups(primary, secondary) if primary else None

    def racks_of(self, store: MetadataStore) -> RackData | None:
        """Racks of bookies; None where no copies are to be spread or kept apart, or the policy does not ask for it."""
        if self.policy in PLACES:
            return RackData(store, PLACES[self.policy])
        is_spread = self.managed_ledger_default_ensemble_size > 1 and self.policy == RACKS
        return RackData(store) if is_spread or self.isolation is not None else None

    def weights_of(self, bookies: Mapping[str, BookieClient]) -> DiskWeights | None:
        if not self.bookkeeper_disk_weight_based_placement_enabled:
            return None
        interval = self.bookkeeper_client_get_bookie_info_interval_seconds
        return DiskWeights(bookies, interval, self.bookkeeper_client_get_bookie_info_retry_interval_seconds)

    def placement(self, racks: RackData | None, rng: Rng, weights: DiskWeights | None = None) -> Placement:
        """The policy that these settings ask for."""
        weight_of = None if weights is None else weights.weight_of
        if racks is None or self.policy == ANYWHERE:
            return AnyPlace(rng, weight_of)
        if self.policy == ZONES:
            return ZoneawarePlacement(racks.place_of, self.bookkeeper_min_num_zones_per_write_quorum, rng, weight_of=weight_of)
        by_region = self.policy == REGIONS
        return SpreadPlacement(
            racks.place_of,
            REGIONS_MIN if by_region else self.bookkeeper_client_min_num_racks_per_write_quorum,
            rng,
            is_enforced=self.bookkeeper_client_enforce_min_num_racks_per_write_quorum,
            is_nested=by_region,
            weight_of=weight_of,
        )
