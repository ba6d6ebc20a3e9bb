"""Transactions."""

from cli.admin.table import Command

COMMANDS = (
    Command(
        "coordinator-internal-stats",
        "-c/--coordinator-id:int! -m/--metadata",
        "GET /admin/v3/transactions/coordinatorInternalStats/{coordinator-id}?metadata={metadata}",
        output="json",
    ),
    Command(
        "pending-ack-internal-stats",
        "-t/--topic! -s/--subscription-name! -m/--metadata",
        "GET /admin/v3/transactions/pendingAckInternalStats/{bare-topic}/{subscription-name}?metadata={metadata}",
        output="json",
    ),
    Command(
        "buffer-snapshot-internal-stats",
        "-t/--topic! -m/--metadata",
        "GET /admin/v3/transactions/transactionBufferInternalStats/{bare-topic}?metadata={metadata}",
        output="json",
    ),
    Command(
        "coordinator-stats",
        "-c/--coordinator-id:int",
        "GET /admin/v3/transactions/coordinatorStats?coordinatorId={coordinator-id}",
        output="json",
    ),
    Command(
        "transaction-buffer-stats",
        "-t/--topic! -l/--low-water-mark -s/--segment-stats",
        "GET /admin/v3/transactions/transactionBufferStats/{bare-topic}?lowWaterMarks={low-water-mark}"
        "&segmentStats={segment-stats}",
        output="json",
    ),
    Command(
        "pending-ack-stats",
        "-t/--topic! -s/--sub-name! -l/--low-water-mark",
        "GET /admin/v3/transactions/pendingAckStats/{bare-topic}/{sub-name}?lowWaterMarks={low-water-mark}",
        output="json",
    ),
    Command(
        "transaction-in-buffer-stats",
        "-m/--most-sig-bits:int! -l/--least-sig-bits:long! -t/--topic!",
        "GET /admin/v3/transactions/transactionInBufferStats/{bare-topic}/{most-sig-bits}/{least-sig-bits}",
        output="json",
    ),
    Command(
        "transaction-in-pending-ack-stats",
        "-m/--most-sig-bits:int! -l/--least-sig-bits:long! -t/--topic! -s/--sub-name!",
        "GET /admin/v3/transactions/transactionInPendingAckStats/{bare-topic}/{sub-name}/{most-sig-bits}/{least-sig-bits}",
        output="json",
    ),
    Command(
        "transaction-metadata",
        "-m/--most-sig-bits:int! -l/--least-sig-bits:long!",
        "GET /admin/v3/transactions/transactionMetadata/{most-sig-bits}/{least-sig-bits}",
        output="json",
    ),
    Command(
        "slow-transactions",
        "-c/--coordinator-id:int -t/--time:millis!",
        "GET /admin/v3/transactions/slowTransactions/{time}?coordinatorId={coordinator-id}",
        output="json",
    ),
    Command(
        "scale-transactionCoordinators",
        "-r/--replicas:int=0",
        "POST /admin/v3/transactions/transactionCoordinator/replicas",
        body="{replicas}",
    ),
    Command(
        "position-stats-in-pending-ack",
        "-t/--topic! -s/--subscription-name! -l/--ledger-id:long! -e/--entry-id:long! -b/--batch-index:int",
        "GET "
        "/admin/v3/transactions/positionStatsInPendingAck/{bare-topic}/{subscription-name}/{ledger-id}/{entry-id}?batchIndex={batch-index}",
        output="json",
    ),
    Command("coordinators-list", request="GET /admin/v3/transactions/coordinators", output="json-each"),
    Command(
        "abort-transaction",
        "-m/--most-sig-bits:long! -l/--least-sig-bits:long!",
        "POST /admin/v3/transactions/abortTransaction/{most-sig-bits}/{least-sig-bits}",
    ),
)
