"""Bundles of namespaces, and the broker that owns each."""
