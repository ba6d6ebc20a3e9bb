"""TransactionSettings: Apache's keys of transaction coordinators.

`transactionLogBatchedWriteEnabled` and its bounds are not here: records that are appended while others are on their way share a
write of the journal anyway. Logs that Apache's coordinators wrote in batches are read.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Settings of all coordinators of a broker."""

    transaction_coordinator_enabled: bool = False
    """Whether there are transactions at all."""
    max_active_transactions_per_coordinator: int = 0
    """0: as many as fit (a million). One more is refused (in Apache its client waits until it gives up)."""
    transaction_buffer_client_max_concurrent_requests: int = 1000
    """Partitions and subscriptions that are asked at the same time to end a transaction; others wait their turn."""
    transaction_buffer_client_operation_timeout_in_mills: int = 3000
    """Time that one of them may take; then it is asked again."""

    def __post_init__(self) -> None:
        if self.max_active_transactions_per_coordinator < 0:
            raise ValueError("maxActiveTransactionsPerCoordinator: expected 0 (no bound) or more")
        if self.transaction_buffer_client_max_concurrent_requests < 1:
            raise ValueError("transactionBufferClientMaxConcurrentRequests: expected at least 1")
        if self.transaction_buffer_client_operation_timeout_in_mills < 1:
            raise ValueError("transactionBufferClientOperationTimeoutInMills: expected at least 1 millisecond")
