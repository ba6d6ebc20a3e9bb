"""Cursor properties that are not the subscriber's, and the ledgers that some of them name. Pure.

Properties with one of the prefixes are the broker's own (Apache: ManagedCursor.CURSOR_INTERNAL_PROPERTY_PREFIX): no
subscriber may set them, for ledgers that they name are deleted. Buckets of delayed messages are ledgers: Apache's are named by
the ledgers of the log that they are about, and no two may be about the same one (BucketDelayedDeliveryTracker); where a
bucket is about a part of a ledger, or not finished, we name it in our own way.
"""

from collections.abc import Mapping

INTERNAL_PREFIX = "#pulsar.internal."
OWN_PREFIXES = (INTERNAL_PREFIX, "magnetar.")
APACHE_BUCKET = INTERNAL_PREFIX + "delayed.bucket"
BUCKET = INTERNAL_PREFIX + "magnetar.delayed.bucket"
COMPACTING = "magnetar.compacting"  # the product's first name, as in the others: they are stored
"""Ids of ledgers with commas between, which a compaction makes or replaces: the compacted one alone is needed."""


def internal(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key.startswith(OWN_PREFIXES)}


def public(properties: Mapping[str, str]) -> dict[str, str]:
    """The subscriber's properties."""
    return {key: value for key, value in properties.items() if not key.startswith(OWN_PREFIXES)}


def bucket_key(ledger_id: int) -> str:
    return f"{BUCKET}_{ledger_id}"


def apache_bucket_key(first_ledger_id: int, last_ledger_id: int) -> str:
    return f"{APACHE_BUCKET}_{first_ledger_id}_{last_ledger_id}"


def bucket_ledgers(properties: Mapping[str, str]) -> dict[str, int]:
    """Ledger of each bucket by key; properties that name no ledger are left out."""
    prefixes = (APACHE_BUCKET + "_", BUCKET + "_")
    return {key: int(value) for key, value in properties.items() if key.startswith(prefixes) and value.isdecimal()}
