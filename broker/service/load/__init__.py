"""Load: placement of bundles, moves from overloaded brokers, splits."""
