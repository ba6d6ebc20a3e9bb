"""An add's way in a bookie: admission, memtable, flush to ledger storage."""
