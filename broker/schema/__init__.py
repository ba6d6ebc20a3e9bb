"""Schemas of topics: what they are, which may follow which, where they are stored. Knows no topic and no connection."""
