"""Reads of a dispatcher: the next one, its deliverable entries, and entries to read again."""
