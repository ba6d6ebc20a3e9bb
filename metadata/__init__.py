"""Versioned keys with watches and sessions, at Apache's paths and in Apache's encodings.

Forms: embedded (SQLite) and memory.
"""
