"""A read's way in a bookie: memtables first, then entry logs."""
