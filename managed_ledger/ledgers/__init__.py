"""The ledgers that a managed ledger is made of: their list, its node, trimming and deletion."""
