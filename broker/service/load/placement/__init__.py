"""Placement of bundles without an owner: candidates, rules and choice."""
