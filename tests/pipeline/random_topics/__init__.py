"""Whole topics made by a seed, read by all ways that there are, and compared with what was sent. See `__main__`."""
