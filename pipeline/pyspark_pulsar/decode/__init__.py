"""Entries to Arrow, by vector operations over whole blocks of entries. Pure: bytes in, arrays out."""
