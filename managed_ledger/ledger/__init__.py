"""The log itself: which ledgers it is made of, when the next one begins, appending, reading, trimming."""
