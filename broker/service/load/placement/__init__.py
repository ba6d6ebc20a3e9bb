"""Placement of bundles that nobody owns: candidates, rules and choice."""
