"""The coordinator's side of transactions: which there are, who takes part, and that each ends once (PIP-31)."""
