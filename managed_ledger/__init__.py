"""An endless log with cursors, made of ledgers.

Positions, roll-over, cache, acknowledgements and their persistence, trimming.
"""
