"""The ledgers as a client sees them: create, append runs, read, close, fence, recover, delete.

It shares the wire with `bookie`, and no code.
"""
