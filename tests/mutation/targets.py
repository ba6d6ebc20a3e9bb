"""Mutated modules, and the tests that have to find the mutants.

The modules are the pure machines and the storage: what decides about messages, cursors, ledgers and entries. A wrong decision
there loses or repeats data; a wrong log line does not, so composition roots, tools and HTTP are left out.
"""

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "bookie/journal", "bookie/storage", "bookie/ranges.py", "bookie/adds/memtable.py", "bookie/ledgers.py",
    "bookie/reads/reading.py", "bookie/upkeep/compaction_plan.py",
    "bookkeeper/write/quorum_tracker.py", "bookkeeper/write/ensemble_change.py",
    "bookkeeper/ledger_end/recovery.py", "bookkeeper/ledger_metadata/codec.py",
    "bookkeeper/read/replica_read.py", "bookkeeper/repair/underreplication/tree.py", "bookkeeper/repair/ledger/plan.py",
    "bookkeeper/repair/ledger/fragments.py", "broker/dispatchers", "broker/topic/publish/deduplication.py",
    "broker/topic/publish/admission.py", "broker/service/ownership/ownership_machine.py",
    "broker/topic/acknowledging.py", "broker/topic/limits/token_buckets.py", "broker/connection/producers/publish_gate.py",
    "broker/connection/session.py",
    "broker/compaction/keys.py", "broker/compaction/sifting.py", "broker/transaction/machine.py",
    "broker/transaction/records.py", "managed_ledger/cursor", "managed_ledger/cache",
    "managed_ledger/append", "managed_ledger/read", "managed_ledger/ledgers",
    "metadata/tree.py", "metadata/claim.py",
)  # fmt: skip
LAYERS: Mapping[str, tuple[str, ...]] = {
    "bookie": ("tests/bookie",),
    "bookkeeper": ("tests/bookkeeper", "tests/transcripts"),
    "broker": (
        "tests/broker/dispatchers", "tests/broker/policies", "tests/broker/topic", "tests/broker/connection",
        "tests/broker/transaction", "tests/broker/compaction", "tests/transcripts",
    ),
    "managed_ledger": ("tests/managed_ledger", "tests/broker/topic"),
    "metadata": ("tests/metadata",),
}  # fmt: skip
"""The first part of a module's name, and the tests that are tried."""


def modules(prefix: str = "") -> list[str]:
    """Dotted names, sorted; those that begin with `prefix`."""
    paths = [path for name in PACKAGES for path in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if path.name != "__init__.py"}
    return sorted(name for name in names if name.startswith(prefix))
