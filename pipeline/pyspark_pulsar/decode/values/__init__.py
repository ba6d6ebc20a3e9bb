"""Payloads as Arrow columns by the registry's schemas. Pure."""
