"""Repair of replicated ledgers: finds lost bookies and the ledgers that lack copies, and copies their entries again."""
