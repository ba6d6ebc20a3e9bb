"""Transactions of a write: opened, decided once, noted in a topic and committed."""
