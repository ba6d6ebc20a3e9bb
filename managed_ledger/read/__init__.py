"""Reads: from the cache or from ledgers, in large pieces for readers that go on."""
