"""Metadata of ledgers: ids, paths, bytes in the metadata store, and versions."""
