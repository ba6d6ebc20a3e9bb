"""Ledger of two segments on four bookies, open and closed."""

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment

A, B, C, D = "a:1", "b:1", "c:1", "d:1"
OPEN = LedgerMetadata(3, 2, 2, (Segment(0, (A, B, C)), Segment(10, (A, B, D))))
CLOSED = OPEN.closed(19, 1000)
