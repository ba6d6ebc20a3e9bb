"""The process of every server: signals, ready file, interpreter, failures at the start."""
