"""Lookup: addresses of the broker that serves a topic."""
