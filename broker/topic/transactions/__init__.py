"""The topic's side of transactions: messages and acknowledgements in them, undecided until they end (PIP-31)."""
