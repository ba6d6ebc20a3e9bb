"""Entries straight from bookies: over their port, or from their files."""
