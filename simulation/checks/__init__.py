"""Promises of a server, checked against the history of a run. Pure but for the census of objects."""
