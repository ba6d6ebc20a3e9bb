"""Each planted bug is found within a bounded number of seeds. That there is silence without it is shown by test_seeds.py."""

from collections.abc import Iterator

import pytest

from simulation.cluster.plants import CLUSTER_PLANTS
from simulation.planted import PLANTED
from simulation.quorum.full_repair_plants import FULL_REPAIR_PLANTS
from simulation.quorum.plants import QUORUM_PLANTS
from simulation.standalone.full_disk_plants import FULL_DISK_PLANTS
from simulation.transfers.plants import TRANSFER_PLANTS

SEEDS_MAX = {"ack-before-fsync": 120, "ack-before-fsync-when-full": 120, "deletion-forgotten": 150,
             "sent-at-the-end-of-the-turn-alone": 300}  # fmt: skip
"""Number of seeds for bugs that take a crash, or two events, at the right moment; 40 for others."""

FULL_PLANTS = FULL_DISK_PLANTS.keys() | FULL_REPAIR_PLANTS.keys()
FOUND_AS = {
    "torn-frame-accepted": "LedgerUnreadable: ",
    "receipts-out-of-order": "OutOfOrder: ",
    "receipts-of-parts-out-of-order": "OutOfOrder: ",
    "receipt-to-another-connection": "OutOfOrder: ",
    "marker-before-segments": "BrokenMetadata: ",
    "sent-at-the-end-of-the-turn-alone": "OutOfOrder: ",
}
"""Beginning of the failure that finds the bug, where the checker does not find it."""
SEEDS_FROM = {"close-forgotten": 29, "ack-before-fsync-when-full": 60, "sent-at-the-end-of-the-turn-alone": 171}
"""First seed tried for each bug: many seeds before it know nothing of the bug."""


@pytest.mark.parametrize(
    "name",
    sorted(PLANTED.keys() - QUORUM_PLANTS.keys() - CLUSTER_PLANTS.keys() - TRANSFER_PLANTS.keys() - FULL_PLANTS),
)
def test_a_planted_bug_is_found(name: str) -> None:
    """Bugs of the ledger protocol are in test_quorum_seeds.py, of a cluster in test_cluster_seeds.py, of transactions in
    test_transfer_seeds.py, of full disks in test_full_disk_seeds.py and test_full_repair_seeds.py."""
    plant = PLANTED[name]
    with plant.planted():
        failure = next(filter(None, (plant.run(seed, None).failure for seed in _seeds(name))), None)
    assert failure is not None, plant.what
    assert failure.startswith(FOUND_AS.get(name, "Violation: ")), (
        "found by what it breaks, not because it does not fit any more"
    )


def _seeds(name: str) -> Iterator[int]:
    first, count = SEEDS_FROM.get(name, 0), SEEDS_MAX.get(name, 40)
    return ((first + number) % count for number in range(count))
