"""Settings of the ledger client, under Apache's keys."""

from dataclasses import dataclass

from wire.digests import DigestType

DIGEST_TYPES = {
    "CRC32": DigestType.CRC32,
    "MAC": DigestType.HMAC,
    "CRC32C": DigestType.CRC32C,
    "DUMMY": DigestType.DUMMY,
}
"""The names of BookKeeper.DigestType; the metadata has others."""


@dataclass(frozen=True, slots=True)
class BookKeeperSettings:
    """How new ledgers are made. Ensemble >= write quorum >= ack quorum >= 1."""

    managed_ledger_default_ensemble_size: int = 2
    managed_ledger_default_write_quorum: int = 2
    managed_ledger_default_ack_quorum: int = 2
    managed_ledger_digest_type: str = "CRC32C"
    """CRC32, MAC, CRC32C or DUMMY (none). Others than CRC32C cost a copy and a slow loop."""
    managed_ledger_password: str = ""
    bookkeeper_delay_ensemble_change: bool = False
    """A bookie that fails is replaced only when too few others are left, not at once (BookKeeper's delayEnsembleChange)."""

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

    @property
    def digest_type(self) -> DigestType:
        return DIGEST_TYPES[self.managed_ledger_digest_type]
