"""Adding entries: a ledger's writer, its appends under way, and the bookies that must store each entry."""
