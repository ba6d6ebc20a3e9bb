"""Cursors: acknowledgements in memory, their state in a node or a cursor ledger, and the time of each save."""
