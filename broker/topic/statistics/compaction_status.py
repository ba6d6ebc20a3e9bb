"""State of a topic's compaction. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from broker.errors import BrokerError, ServerError


class CompactionState(StrEnum):
    """LongRunningProcessStatus.Status."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


class CompactionUnderWay(BrokerError):
    """One at a time."""

    def __init__(self) -> None:
        super().__init__(ServerError.NOT_ALLOWED, "Compaction already in progress")


@dataclass(frozen=True, slots=True)
class CompactionStatus:
    """Status of the last run, or the one under way; `error` describes a failure, else it is empty."""

    state: CompactionState = CompactionState.NOT_RUN
    error: str = ""
