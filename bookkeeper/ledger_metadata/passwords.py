"""Master keys: what a writer shows to a bookie in place of the ledger's password. Pure."""

import hashlib

MASTER_KEY_BYTES = 20


def master_key(password: bytes) -> bytes:
    """BookKeeper's: SHA-1 over "ledger" and the password, whatever the digest type, also for the empty one."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()
