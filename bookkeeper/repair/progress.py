"""RepairProgress: how much of a repair is done, and how long the rest may take. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepairProgress:
    """Progress of a repair that began with `ledgers_total`. Seconds."""

    ledgers_total: int
    ledgers_left: int
    elapsed_seconds: float

    @property
    def ledgers_done(self) -> int:
        return self.ledgers_total - self.ledgers_left

    @property
    def eta_seconds(self) -> float | None:
        """Remaining time at the pace so far; None while nothing is done yet."""
        if not self.ledgers_left:
            return 0.0
        return self.elapsed_seconds * self.ledgers_left / self.ledgers_done if self.ledgers_done > 0 else None
