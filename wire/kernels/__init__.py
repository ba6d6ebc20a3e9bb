"""The per-entry loops of the hot path, compiled by Cython in pure-Python mode where a C compiler is there.

Every module here also runs uncompiled, slower, with the same results. Nothing outside this package loops over messages.
"""
