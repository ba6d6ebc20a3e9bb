"""Lives of one replicated ledger on three to five bookies."""
