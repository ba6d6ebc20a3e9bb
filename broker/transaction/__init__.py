"""The coordinator's side of transactions: their list, their participants, and a single end of each (PIP-31)."""
