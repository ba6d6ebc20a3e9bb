"""The entry cache of all managed ledgers of a process: runs by ledger, bounded together."""
