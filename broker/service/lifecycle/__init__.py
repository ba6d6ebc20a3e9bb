"""Lifecycle of topics: loading, creation, deletion, periodic upkeep."""
