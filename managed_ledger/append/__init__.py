"""Appends: the open ledger, when the next one begins, and the listeners that are notified."""
