"""The topic's side of transactions: what is published and acknowledged in them, undecided until they end (PIP-31)."""
