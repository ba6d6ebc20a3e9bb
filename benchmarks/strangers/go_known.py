"""Tests of Apache's Go client that fail here, each with its reason. The list only shrinks."""

KNOWN: dict[str, str] = {}
