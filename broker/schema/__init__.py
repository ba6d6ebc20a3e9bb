"""Schemas of topics: definitions, compatibility, storage. Knows no topic and no connection."""
