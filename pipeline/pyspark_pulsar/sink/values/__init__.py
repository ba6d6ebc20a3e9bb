"""Columns of a frame as payloads and keys, by each kind of schema. Pure."""
