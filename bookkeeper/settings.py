"""Settings of the ledger client, under Apache's keys."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BookKeeperSettings:
    """How new ledgers are made. Ensemble >= write quorum >= ack quorum >= 1."""

    managed_ledger_default_ensemble_size: int = 2
    managed_ledger_default_write_quorum: int = 2
    managed_ledger_default_ack_quorum: int = 2
    managed_ledger_digest_type: str = "CRC32C"
    managed_ledger_password: str = ""

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
        if self.managed_ledger_digest_type != "CRC32C":
            raise ValueError(f"managedLedgerDigestType={self.managed_ledger_digest_type}: ledgers are written with CRC32C only")
