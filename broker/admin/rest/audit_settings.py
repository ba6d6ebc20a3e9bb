"""AuditSettings: whether mutations over REST are written down, and where. These keys are ours: Apache's broker has none."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Lines of the logger `audit`."""

    audit_log_enabled: bool = True
    """Every mutation over REST is logged: caller, request, time, address, outcome."""
    audit_log_file: str | None = None
    """File of these lines, which then go nowhere else; a file that is moved away is made anew. None: with the other lines."""
