"""The end of a ledger whose writer is gone: fencing, finding the last entry, closing the metadata."""
