"""Holes: entries acknowledged beyond mark-delete, in memory, and as segments in a cursor ledger."""
