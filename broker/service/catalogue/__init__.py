"""Catalogue of namespaces, topics and partitioned topics, and lists of their names."""
