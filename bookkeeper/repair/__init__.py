"""Repair of replicated ledgers: who is lost, which ledgers lack copies because of it, and how they get them again."""
